"""What an ended run leaves to one that continues it: where it stood, its request, its options.

Why it exists: a continuation is about the request as it stood in the end, which edits and a fresh
history may have changed since the start. The history holds it; the version is asked of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import JsonValue, ValidationError
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode

from triage.cli.clients import RPC_TIMEOUT, NoWorkerError, Run, ask_run, find_run
from triage.cli.errors import RefusedError
from triage.continuing import Beginning, first_run_id, read_beginning
from triage.contracts import names
from triage.contracts.base import ContractError
from triage.contracts.failures import FailureClass
from triage.contracts.options import ContinuedFrom, parse_options
from triage.contracts.request import TriageRequest, parse_request
from triage.contracts.search_attributes import TRIAGE_FAILURE
from triage.contracts.state import StateView
from triage.story.carrying import CARRIED
from triage.story.payloads import Fields, Read, Unreadable, first, read

KEPT_OPTIONS: Final = ("context", "model", "grounding", "budget")
"""What a continuation takes over. How far it may go is asked anew, and approvals are never kept."""

START_ANEW: Final = "start a new run with 'triage start' and another --id"


@dataclass(frozen=True, slots=True)
class Predecessor:
    """A run that has ended and can be continued.

    Attributes:
        link: what its continuation is started with.
        status: how it ended.
        request: its request as it stood in the end.
        options: those of its options that a continuation keeps.
        follows: the workflow id of the run that it continued itself; None if it did not.
        ended_at: when it ended.
    """

    link: ContinuedFrom
    status: str
    request: TriageRequest
    options: dict[str, JsonValue]
    follows: str | None
    ended_at: datetime


async def predecessor(client: Client, name: str) -> Predecessor:
    """Return what a run leaves behind.

    Raises:
        RefusedError: there is no such run, it still runs, or nothing is left to continue.
        NoWorkerError: no worker answers for it.
    """
    run = await _ended(client, name)
    events = await _events(run)
    state = await _state(client, run)
    request, options = _request(run, events), _options(run, events)
    return Predecessor(
        link=_link(run, state),
        status=state.response.status.value if state.response else run.execution_status,
        request=request,
        options={key: options.value(key) for key in KEPT_OPTIONS if key in options},
        follows=options.fields("continued_from").text("workflow_id") or None,
        ended_at=run.description.close_time or run.description.start_time,
    )


async def _ended(client: Client, name: str) -> Run:
    """Find the run, and hold to this execution of it."""
    try:
        run = await find_run(client, name)
    except RefusedError as error:
        hint = f"one whose history has expired cannot be continued: {START_ANEW}"
        raise RefusedError(str(error), hint) from None
    if run.description.workflow_type != names.ISSUE_TRIAGE:
        raise RefusedError(f"{run.id} is no triage: there is nothing to continue")
    if run.is_open:
        raise RefusedError(
            f"{run.id} has not ended: there is nothing to continue",
            "decide with 'triage approve' or 'triage reject', or change its request with "
            "'triage edit'; 'triage show' says what it waits for",
        )
    return Run(client.get_workflow_handle(run.id, run_id=run.description.run_id), run.description)


async def _events(run: Run) -> Sequence[HistoryEvent]:
    try:
        history: WorkflowHistory = await run.handle.fetch_history(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        raise RefusedError(f"the history of {run.id} is gone", START_ANEW) from None
    if not _has_begun(history.events):
        raise RefusedError(f"{run.id} ended before it had begun", START_ANEW)
    return history.events


def _has_begun(events: Sequence[HistoryEvent]) -> bool:
    return any(e.HasField("workflow_task_completed_event_attributes") for e in events)


async def never_began(run: Run) -> bool:
    """Whether a run has ended that was refused as invalid, or stopped before a worker saw it.

    Raises:
        RPCError: its history cannot be read.
    """
    if run.is_open:
        return False
    if run.description.typed_search_attributes.get(TRIAGE_FAILURE) == FailureClass.INVALID_INPUT:
        return True
    history = await run.handle.fetch_history(rpc_timeout=RPC_TIMEOUT)
    return not _has_begun(history.events)


async def _state(client: Client, run: Run) -> StateView:
    try:
        state = StateView.model_validate_json(await ask_run(client, run, names.QUERY_STATE))
    except NoWorkerError as error:
        raise NoWorkerError(f"{error}; nothing was started", error.hint) from None
    except ValidationError:
        raise RefusedError("the worker runs another version of this program") from None
    if state.response is not None and state.response.failure is FailureClass.INVALID_INPUT:
        raise RefusedError(f"{run.id} was refused as invalid input: it never began", START_ANEW)
    return state


def _link(run: Run, state: StateView) -> ContinuedFrom:
    """Name the chain of executions that ended, and where.

    A run that was stopped may have been in the middle of a call. Whatever that left is of the
    version at which it was stopped, and the continuation has to come after it.
    """
    stopped = 0 if state.response else 1
    return ContinuedFrom(
        workflow_id=run.id,
        run_id=first_run_id(run.description),
        version=state.version + stopped,
        trail=state.trail,
    )


def _request(run: Run, events: Sequence[HistoryEvent]) -> TriageRequest:
    try:
        return standing_request(events)
    except ContractError:
        raise RefusedError(f"the request of {run.id} cannot be read here", START_ANEW) from None


def standing_request(events: Sequence[HistoryEvent]) -> TriageRequest:
    """Return the request of a run as it stands after these events: the latest valid edit counts.

    Raises:
        ContractError: it began with none that can be read here.
    """
    values = _arguments(events)
    request = parse_request(values[0] if values else None)
    # A run whose history had grown long was handed an edit on that it had not taken up yet.
    handed_on = Fields(values[CARRIED] if len(values) > CARRIED else None)
    for edit in (handed_on.value("edit"), *_edits(events)):
        request = _edited(request, edit)
    return request


def _edits(events: Sequence[HistoryEvent]) -> list[JsonValue]:
    signals = [
        event.workflow_execution_signaled_event_attributes
        for event in events
        if event.HasField("workflow_execution_signaled_event_attributes")
    ]
    return [
        _json(first(signal.input))
        for signal in signals
        if signal.signal_name == names.SIGNAL_EDIT and len(signal.input.payloads) == 1
    ]


def _edited(request: TriageRequest, edit: JsonValue) -> TriageRequest:
    """Return what an edit makes of a request: a run takes no invalid one, nor another request's."""
    try:
        changed = parse_request(edit)
    except ContractError:
        return request
    return changed if changed.request_id == request.request_id else request


def _options(run: Run, events: Sequence[HistoryEvent]) -> Fields:
    values = _arguments(events)
    try:
        given = parse_options(values[1] if len(values) > 1 else None)
    except ContractError:
        raise RefusedError(f"the options of {run.id} cannot be read here", START_ANEW) from None
    return Fields(given.model_dump(mode="json", exclude_defaults=True))


def _arguments(events: Sequence[HistoryEvent]) -> list[JsonValue]:
    started = events[0].workflow_execution_started_event_attributes
    return [_json(read(payload)) for payload in started.input.payloads]


def _json(value: Read) -> JsonValue:
    """Return a value; in the place of one that cannot be read, what no contract takes."""
    return "" if isinstance(value, Unreadable) else value


async def beginning_of(run: Run) -> Beginning:
    """Return what a run was started with; nothing of it where the server cannot tell."""
    try:
        return await read_beginning(run.handle)
    except RPCError:
        return Beginning()
