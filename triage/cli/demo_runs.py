"""The demo's own runs: the sample requests, and one write that a person approves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue
from temporalio.client import Client, WorkflowHandle

from triage.cli.briefing_lines import operation_lines
from triage.cli.clients import ask
from triage.cli.errors import RefusedError
from triage.cli.inputs import read_json
from triage.cli.orders import ID_PREFIX, Checked
from triage.cli.output import say
from triage.cli.starting import begin
from triage.contracts import names
from triage.contracts.approval import Review, ReviewAnswer, Verdict
from triage.contracts.options import DEFAULT_REPOSITORY
from triage.contracts.request import parse_request
from triage.contracts.response import TriageResponse
from triage.contracts.state import PendingView, StateView
from triage.resources import fixtures_path
from triage.settings import Settings
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.trackers.base import IssueNotFound
from triage.trackers.local import LocalTracker
from triage.trackers.local_people import IssueRecord

TO_APPROVE: Final = "api-bug.json"
APPROVER: Final = "demo-maintainer"
POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample request and what came of it."""

    file: str
    workflow_id: str
    response: TriageResponse


@dataclass(frozen=True, slots=True)
class Written:
    """The approved write, from what was shown to what is on the issue."""

    workflow_id: str
    pending: PendingView
    response: TriageResponse
    receipts: tuple[bytes, ...]
    issue: IssueRecord


async def triage_samples(client: Client, settings: Settings) -> list[Sample]:
    """Triage all sample requests side by side."""
    files = sorted(fixtures_path("requests").glob("*.json"))
    return list(await asyncio.gather(*(_sample(client, settings, file) for file in files)))


async def _sample(client: Client, settings: Settings, file: Path) -> Sample:
    document = read_json(file, "request")
    request_id = parse_request(document).request_id
    checked = Checked(f"{ID_PREFIX}{request_id}", request_id, [document])
    handle = await begin(client, settings, checked)
    return Sample(file.name, handle.id, await handle.result())


async def carry_write_through(client: Client, settings: Settings) -> Written:
    """Start a run in approve mode, approve what it waits for, and collect what came of it.

    Raises:
        RefusedError: the run did not wait, or the approval did not count.
    """
    document = read_json(fixtures_path("requests", TO_APPROVE), "request")
    request_id = parse_request(document).request_id
    options: dict[str, JsonValue] = {"mode": "approve"}
    checked = Checked(f"{ID_PREFIX}{request_id}-approved", request_id, [document, options])
    handle = await begin(client, settings, checked)
    pending = await _pending(handle)
    say(f"{handle.id} waits for a person:", *operation_lines(pending))
    review = Review(
        operation_id=pending.operation_id,
        version=pending.version,
        approver=APPROVER,
        digest=pending.digest,
        verdict=Verdict.APPROVE,
    )
    answer = await handle.execute_update(names.UPDATE_REVIEW, review, result_type=ReviewAnswer)
    if not answer.accepted:
        raise RefusedError(f"the approval did not count: {answer.code}")
    say(f"approved as {APPROVER}")
    response = await handle.result()
    receipts, issue = await _evidence(settings, handle.id, request_id)
    return Written(handle.id, pending, response, receipts, issue)


async def _pending(handle: WorkflowHandle[Any, TriageResponse]) -> PendingView:
    """Wait until the run waits for a person."""
    while True:
        state = StateView.model_validate_json(await ask(handle, names.QUERY_STATE))
        if state.pending is not None:
            return state.pending
        if state.response is not None:
            raise RefusedError(f"the run to approve ended first: {state.response.reason}")
        await asyncio.sleep(POLL_SECONDS)


async def _evidence(
    settings: Settings, workflow_id: str, number: str
) -> tuple[tuple[bytes, ...], IssueRecord]:
    """Read what the ledger and the tracker say about the write."""
    store = await Store.open(settings.database_url)
    try:
        operations = await Ledger(store).list(workflow_id=workflow_id)
        issue = await LocalTracker(store).show_issue(DEFAULT_REPOSITORY, number)
    finally:
        await store.close()
    if isinstance(issue, IssueNotFound):
        raise RefusedError(f"the tracker lost issue {number}")
    return tuple(o.receipt for o in operations if o.receipt is not None), issue
