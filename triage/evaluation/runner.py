"""Running a fixture's cases as real workflows, side by side.

Why it exists: an evaluation is worth something only if it runs what production runs. Each case is
an IssueTriage workflow with an id, a repository and so a ledger and a tracker of its own, so that
no case, and no earlier evaluation, can touch another's answers.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final
from uuid import uuid4

from pydantic import JsonValue
from temporalio.client import Client
from temporalio.exceptions import TemporalError

from triage.contracts.options import IssueContext, RunOptions
from triage.contracts.response import TriageResponse
from triage.contracts.state import MutationRecord
from triage.evaluation.execution import (
    NoResponse,
    Progress,
    mutations_of,
    result_of,
    side_by_side,
    start,
    store_script,
    too_late,
    why,
)
from triage.evaluation.fixture import Case, Fixture, read_fixture, run_options
from triage.evaluation.grader import grade
from triage.evaluation.report import CaseRecord, Evaluation
from triage.evaluation.stack import own_stack
from triage.settings import Settings
from triage.storage.documents import DocumentStore
from triage.storage.engine import Store

IN_FLIGHT: Final = 16
"""Cases that run at a time: enough to keep two cores busy; more would only wait for each other."""

CASE_SECONDS: Final = 120
"""What one case may take. A stuck run becomes a failed case, and never a hang."""


async def evaluate_file(
    path: Path, settings: Settings, progress: Progress | None = None
) -> Evaluation:
    """Evaluate a fixture file on an embedded server, or on the one that is configured.

    Worker, task queue and database are the evaluation's own, and nothing is left of them.

    Args:
        path: the fixture.
        settings: the user's; nothing in them changes an answer.
        progress: called after each case.

    Raises:
        FixtureError: the file is no fixture; nothing was started.
        ServerUnreachable: the configured server cannot be used.
        EmbeddedError: a server or worker did not start, or ended.
    """
    fixture = read_fixture(path)
    async with own_stack(settings, "eval") as stack:
        return await stack.run(evaluate_on(stack.client, fixture, stack.settings, progress))


async def evaluate_on(
    client: Client, fixture: Fixture, settings: Settings, progress: Progress | None = None
) -> Evaluation:
    """Evaluate on a server where a worker with exactly these settings runs already.

    Args:
        client: of the server.
        fixture: the cases.
        settings: the worker's: its task queue, and the database where it finds scripts.
        progress: called after each case.

    Returns:
        One record for each case, in the fixture's order, whatever became of its run.

    Raises:
        StorageError: the scripts cannot be stored.
    """
    store = await Store.open(settings.database_url)
    try:
        bench = _Bench(client, DocumentStore(store), settings.task_queue)
        return Evaluation(await side_by_side(fixture.cases, bench.run, progress, IN_FLIGHT))
    finally:
        await store.close()


class _Bench:
    """Runs single cases; every name that it uses is new to this evaluation."""

    def __init__(self, client: Client, documents: DocumentStore, task_queue: str) -> None:
        self._client = client
        self._documents = documents
        self._task_queue = task_queue
        self._name = f"evaluation-{uuid4().hex}"

    async def run(self, case: Case, position: int) -> CaseRecord:
        """Run a case and grade what came of it."""
        try:
            async with asyncio.timeout(CASE_SECONDS):
                response, mutations = await self._outcome(case, position)
        except TimeoutError:
            return _without_response(case, too_late(CASE_SECONDS))
        except NoResponse as error:
            return _without_response(case, str(error))
        actual = response.model_dump(mode="json")
        failures = tuple(grade(case, actual))
        return CaseRecord(id=case.id, actual=actual, failures=failures, mutations=mutations)

    async def _outcome(
        self, case: Case, position: int
    ) -> tuple[TriageResponse, tuple[MutationRecord, ...]]:
        options = await self._options(case, position)
        try:
            handle = await start(
                self._client,
                case.request,
                options,
                workflow_id=f"{self._name}-{position}",
                task_queue=self._task_queue,
                seconds=CASE_SECONDS,
            )
            response = await result_of(handle)
            return response, await mutations_of(handle, response)
        except TemporalError as error:
            raise NoResponse(why(error, CASE_SECONDS)) from None

    async def _options(self, case: Case, position: int) -> RunOptions:
        return run_options(case.options).model_copy(
            update={
                "model": await store_script(self._documents, case.decisions),
                "context": IssueContext(repository=f"{self._name}/{position}"),
            }
        )


def _without_response(case: Case, why: str) -> CaseRecord:
    reason = f"the run gave no response: {why}"
    nothing: dict[str, JsonValue] = dict.fromkeys(TriageResponse.model_fields)
    return CaseRecord(id=case.id, actual={**nothing, "reason": reason}, failures=(reason,))
