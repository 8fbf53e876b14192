"""How a run and those that continue it are found: their ids follow from each other.

Why it exists: a continuation is linked to the run before it by what it was started with, and
nothing in the ended run names it. Whoever looks for it tries the ids of the series, and believes
the link.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowHandle,
)
from temporalio.service import RPCError, RPCStatusCode

from triage.contracts.base import ContractError
from triage.contracts.canonical import parse_json
from triage.contracts.options import ContinuedFrom, parse_options

FIRST_CONTINUATION: Final = 2
MAX_IDS_TRIED: Final = 50

Handle = WorkflowHandle[Any, Any]

_RPC_TIMEOUT: Final = timedelta(seconds=5)
_JSON: Final = b"json/plain"


def series(base: str, first: int = FIRST_CONTINUATION) -> Iterator[str]:
    """Return the ids that continuations of `base` have: it with ``.2``, ``.3`` and so on."""
    return (f"{base}.{n}" for n in range(first, first + MAX_IDS_TRIED))


def first_run_id(description: WorkflowExecutionDescription) -> str:
    """Return the id of the first of the executions that went on as this one."""
    found: str = description.raw_description.workflow_execution_info.first_run_id
    return found


async def describe(handle: Handle) -> WorkflowExecutionDescription | None:
    """Return what the server knows of a run; None if it knows none.

    Raises:
        RPCError: it cannot be said.
    """
    try:
        return await handle.describe(rpc_timeout=_RPC_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return None


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a run was started with, as far as it can be read.

    Attributes:
        request_id: which request it is about; empty where that cannot be read.
        continued_from: which ended run it continues, if it does.
    """

    request_id: str = ""
    continued_from: ContinuedFrom | None = None


async def read_beginning(handle: Handle) -> Beginning:
    """Return what a run was started with.

    Nothing but the first event of its history is read.

    Raises:
        RPCError: it cannot be read.
    """
    page = handle.fetch_history_events(page_size=1, rpc_timeout=_RPC_TIMEOUT)
    try:
        event = await anext(page)
    except StopAsyncIteration:
        return Beginning()
    return beginning_of([*event.workflow_execution_started_event_attributes.input.payloads])


def beginning_of(given: Sequence[Payload]) -> Beginning:
    """Return what the arguments of a run say: its request, then its options."""
    request, options = [*map(_plain, given[:2]), None, None][:2]
    name = request.get("request_id") if isinstance(request, dict) else None
    try:
        link = None if options is None else parse_options(options).continued_from
    except ContractError:
        link = None
    return Beginning(name if isinstance(name, str) else "", link)


def _plain(payload: Payload) -> JsonValue:
    """Return a value that is not encrypted; None for any other."""
    if payload.metadata.get("encoding") != _JSON:
        return None
    try:
        return parse_json(payload.data, "an argument")
    except ContractError:
        return None


async def read_link(handle: Handle) -> ContinuedFrom | None:
    """Return which ended run this one continues, if it does.

    Raises:
        RPCError: it cannot be read.
    """
    return (await read_beginning(handle)).continued_from


async def newest_of(client: Client, workflow_id: str) -> Handle:
    """Return the run that stands for `workflow_id` now: itself, or the newest that continues it.

    Only an ended run is continued, and only a run whose link names one of the chain counts. One
    that was given an id of another kind is not found.

    Raises:
        RPCError: it cannot be said.
    """
    newest = client.get_workflow_handle(workflow_id)
    found = await describe(newest)
    if found is None or found.status is WorkflowExecutionStatus.RUNNING:
        return newest
    chain = {(workflow_id, first_run_id(found))}
    for candidate in series(workflow_id):
        handle = client.get_workflow_handle(candidate)
        if (found := await describe(handle)) is None:
            break
        link = await read_link(handle)
        if link is not None and (link.workflow_id, link.run_id) in chain:
            chain.add((candidate, first_run_id(found)))
            newest = handle
    return newest
