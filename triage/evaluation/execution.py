"""Running one case as a workflow: start it, wait for its answer, and say why there is none.

Why it exists: an evaluation is worth something only if it runs what production runs, and a run that
is lost, stuck or refused must become a sentence in a report, never a hang or a traceback.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Final, TypeVar

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import RawValue
from temporalio.exceptions import TemporalError
from temporalio.exceptions import TimeoutError as WorkflowTimeoutError
from temporalio.service import RPCError, RPCStatusCode

from triage.contracts.canonical import MAX_DEPTH, canonical_json
from triage.contracts.names import ISSUE_TRIAGE, QUERY_MUTATIONS
from triage.contracts.options import RunOptions
from triage.contracts.response import TriageResponse
from triage.contracts.state import MutationRecord
from triage.evaluation.grader import WRITE_TOOLS
from triage.storage.documents import SHARED, DocumentKind, DocumentStore

Progress = Callable[[int, int], None]
"""Told after each case how many are done, and of how many."""

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

_TERMINATE_SECONDS: Final = 2.0


class NoResponse(Exception):  # noqa: N818 - the name says what happened
    """A run gave no response; the message says why, in our own words."""


async def side_by_side(
    items: tuple[Item, ...],
    run: Callable[[Item, int], Awaitable[Outcome]],
    progress: Progress | None,
    at_once: int,
) -> tuple[Outcome, ...]:
    """Run every item, so many at a time, and return what came of each in the order of the items.

    Raises:
        Exception: what `run` raised first; the others are cancelled.
    """
    found: dict[int, Outcome] = {}
    queue = iter(enumerate(items))

    async def work(queue: Iterator[tuple[int, Item]]) -> None:
        for position, item in queue:
            found[position] = await run(item, position)
            if progress is not None:
                progress(len(found), len(items))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(at_once, len(items))):
                group.create_task(work(queue))
    except ExceptionGroup as faults:
        raise faults.exceptions[0] from None
    return tuple(found[position] for position in range(len(items)))


async def start(
    client: Client,
    request: JsonValue,
    options: RunOptions,
    *,
    workflow_id: str,
    task_queue: str,
    seconds: float,
) -> WorkflowHandle[object, TriageResponse]:
    """Start a run that the server ends after so many seconds."""
    return await client.start_workflow(
        ISSUE_TRIAGE,
        args=[_raw(request), options],
        id=workflow_id,
        task_queue=task_queue,
        result_type=TriageResponse,
        execution_timeout=timedelta(seconds=seconds),
    )


async def result_of(handle: WorkflowHandle[object, TriageResponse]) -> TriageResponse:
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


async def mutations_of(
    handle: WorkflowHandle[object, TriageResponse], response: TriageResponse
) -> tuple[MutationRecord, ...]:
    """Return the writes that the run proposed and policy permitted, in order."""
    if WRITE_TOOLS.isdisjoint(response.tool_sequence):
        return ()
    return tuple(await handle.query(QUERY_MUTATIONS, result_type=list[MutationRecord]))


async def store_script(documents: DocumentStore, decisions: tuple[JsonValue, ...]) -> str:
    """Store recorded decisions and return the name of the model that plays them."""
    script = canonical_json([_storable(item) for item in decisions])
    return f"recorded:{await documents.put(SHARED, DocumentKind.SCRIPT, script)}"


def why(error: TemporalError, seconds: float) -> str:
    """Say in our own words why there is no response: the text of a fault may hold anything."""
    match error:
        case WorkflowFailureError(cause=WorkflowTimeoutError()):
            return too_late(seconds)
        case WorkflowFailureError():
            return f"it failed on the platform ({type(error.cause).__name__})"
        case RPCError(status=RPCStatusCode.INVALID_ARGUMENT):
            return "the server refused the request, which may be too large"
        case RPCError():
            return f"the server answered {error.status.name.lower().replace('_', ' ')}"
        case _:
            return f"its answer could not be had ({type(error).__name__})"


def too_late(seconds: float) -> str:
    """Say that a run took too long."""
    return f"it did not end within {seconds:g} s"


def _raw(value: JsonValue) -> RawValue:
    """Send a request exactly as the file has it, with the order of its keys."""
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
