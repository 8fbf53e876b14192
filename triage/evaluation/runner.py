"""Running a fixture's cases as real workflows, side by side.

Why it exists: an evaluation is worth something only if it runs what production runs. Each case is
an IssueTriage workflow with an id, a repository and so a ledger and a tracker of its own, so that
no case, and no earlier evaluation, can touch another's answers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final
from uuid import uuid4

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import RawValue
from temporalio.exceptions import TemporalError
from temporalio.exceptions import TimeoutError as WorkflowTimeoutError
from temporalio.service import RPCError, RPCStatusCode

from triage.contracts.canonical import MAX_DEPTH, canonical_json
from triage.contracts.names import ISSUE_TRIAGE, QUERY_MUTATIONS
from triage.contracts.options import IssueContext, RunOptions
from triage.contracts.response import TriageResponse
from triage.contracts.state import MutationRecord
from triage.evaluation.fixture import Case, Fixture, read_fixture, run_options
from triage.evaluation.grader import WRITE_TOOLS, grade
from triage.evaluation.report import CaseRecord, Evaluation
from triage.evaluation.stack import own_stack
from triage.settings import Settings
from triage.storage.documents import SHARED, DocumentKind, DocumentStore
from triage.storage.engine import Store

Progress = Callable[[int, int], None]
"""Told after each case how many are done, and of how many."""

IN_FLIGHT: Final = 16
"""Cases that run at a time: enough to keep two cores busy; more would only wait for each other."""

CASE_SECONDS: Final = 120
"""What one case may take. A stuck run becomes a failed case, and never a hang."""

_TERMINATE_SECONDS: Final = 2.0


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
        return Evaluation(await _run_all(bench, fixture.cases, progress))
    finally:
        await store.close()


async def _run_all(
    bench: _Bench, cases: tuple[Case, ...], progress: Progress | None
) -> tuple[CaseRecord, ...]:
    records: dict[int, CaseRecord] = {}
    queue = iter(enumerate(cases))

    def done() -> None:
        if progress is not None:
            progress(len(records), len(cases))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(IN_FLIGHT, len(cases))):
                group.create_task(_work(bench, queue, records, done))
    except ExceptionGroup as faults:
        raise faults.exceptions[0] from None
    return tuple(records[position] for position in range(len(cases)))


async def _work(
    bench: _Bench,
    queue: Iterator[tuple[int, Case]],
    records: dict[int, CaseRecord],
    done: Callable[[], None],
) -> None:
    """Take one case after the other until none is left."""
    for position, case in queue:
        records[position] = await bench.run(case, position)
        done()


class _NoResponse(Exception):  # noqa: N818 - the name says what happened
    """A run gave no response; the message says why, in our own words."""


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
            return _without_response(case, f"it did not end within {CASE_SECONDS} s")
        except _NoResponse as error:
            return _without_response(case, str(error))
        actual = response.model_dump(mode="json")
        failures = tuple(grade(case, actual))
        return CaseRecord(id=case.id, actual=actual, failures=failures, mutations=mutations)

    async def _outcome(
        self, case: Case, position: int
    ) -> tuple[TriageResponse, tuple[MutationRecord, ...]]:
        options = await self._options(case, position)
        try:
            handle = await self._start(case.request, options, f"{self._name}-{position}")
            response = await _result(handle)
            return response, await _mutations(handle, response)
        except TemporalError as error:
            raise _NoResponse(_why(error)) from None

    async def _options(self, case: Case, position: int) -> RunOptions:
        script = canonical_json([_storable(item) for item in case.decisions])
        digest = await self._documents.put(SHARED, DocumentKind.SCRIPT, script)
        return run_options(case.options).model_copy(
            update={
                "model": f"recorded:{digest}",
                "context": IssueContext(repository=f"{self._name}/{position}"),
            }
        )

    async def _start(
        self, request: JsonValue, options: RunOptions, workflow_id: str
    ) -> WorkflowHandle[object, TriageResponse]:
        return await self._client.start_workflow(
            ISSUE_TRIAGE,
            args=[_raw(request), options],
            id=workflow_id,
            task_queue=self._task_queue,
            result_type=TriageResponse,
            execution_timeout=timedelta(seconds=CASE_SECONDS),
        )


async def _result(handle: WorkflowHandle[object, TriageResponse]) -> TriageResponse:
    """Wait for the response; a run that nobody waits for any more is ended."""
    try:
        return await handle.result()
    except asyncio.CancelledError:
        try:
            async with asyncio.timeout(_TERMINATE_SECONDS):
                await handle.terminate("the evaluation was interrupted")
        except (RPCError, TimeoutError):
            pass
        raise


async def _mutations(
    handle: WorkflowHandle[object, TriageResponse], response: TriageResponse
) -> tuple[MutationRecord, ...]:
    if WRITE_TOOLS.isdisjoint(response.tool_sequence):
        return ()
    return tuple(await handle.query(QUERY_MUTATIONS, result_type=list[MutationRecord]))


def _raw(value: JsonValue) -> RawValue:
    """Send a request exactly as the fixture has it, with the order of its keys."""
    data = json.dumps(value, allow_nan=False).encode("ascii")
    return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=data))


def _storable(decision: JsonValue) -> JsonValue:
    """Return a decision as a script can hold it; one that is nested too deeply is none at all."""
    return decision if _depth_fits(decision, MAX_DEPTH - 1) else None


def _depth_fits(value: JsonValue, levels: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return levels >= 0
    return levels >= 0 and all(_depth_fits(item, levels - 1) for item in value)


def _without_response(case: Case, why: str) -> CaseRecord:
    reason = f"the run gave no response: {why}"
    nothing: dict[str, JsonValue] = dict.fromkeys(TriageResponse.model_fields)
    return CaseRecord(id=case.id, actual={**nothing, "reason": reason}, failures=(reason,))


def _why(error: TemporalError) -> str:
    """Say it in our own words: the text of a fault may hold anything."""
    match error:
        case WorkflowFailureError(cause=WorkflowTimeoutError()):
            return f"it did not end within {CASE_SECONDS} s"
        case WorkflowFailureError():
            return f"it failed on the platform ({type(error.cause).__name__})"
        case RPCError(status=RPCStatusCode.INVALID_ARGUMENT):
            return "the server refused the request, which may be too large"
        case RPCError():
            return f"the server answered {error.status.name.lower().replace('_', ' ')}"
        case _:
            return f"its answer could not be had ({type(error).__name__})"
