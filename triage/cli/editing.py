"""`triage edit`: puts a changed request into a run that goes on.

Why it exists: a run takes what it is sent, and keeps what it cannot use as a refusal that nobody
sees. So the request is held to its contract, and to this run, before it is sent.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue, ValidationError
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from triage.cli.clients import (
    RPC_TIMEOUT,
    NoWorkerError,
    Run,
    ask_run,
    bounded,
    connect,
    find_run,
)
from triage.cli.errors import CliError, InputError, RefusedError
from triage.cli.inputs import read_json, refuse_unknown_fields
from triage.cli.orders import size_of
from triage.cli.output import Format, put, put_json, say
from triage.cli.predecessors import standing_request
from triage.cli.running import run as run_coroutine
from triage.cli.text import exact
from triage.contracts import names
from triage.contracts.base import ContractError
from triage.contracts.request import TriageRequest, changed_fields, parse_request
from triage.contracts.response import Status
from triage.contracts.state import StateView

EDIT_SECONDS: Final = 30.0
"""The run's history may come in many pages."""

MAX_EDIT_BYTES: Final = 1_310_720
"""A run takes no larger request."""

NO_WORKER: Final = "no worker answers: the edit is taken up when one does"


@dataclass(frozen=True, slots=True)
class Edit:
    """A changed request, as it was written and as it is read."""

    document: JsonValue
    request: TriageRequest


def edit(name: str, file: Path, format_: Format) -> None:
    """Send a changed request, and say what becomes of what the run waits for.

    Raises:
        CliError: the run has ended or is about another request, nothing would change, or Temporal
            cannot be reached.
        ContractError: the request is not what it should be.
    """
    document = read_json(file, "request")
    refuse_unknown_fields(document, "request", TriageRequest)
    request = parse_request(document)
    if size_of(document) > MAX_EDIT_BYTES:
        raise InputError(f"the request is too large: a run takes {MAX_EDIT_BYTES:,} bytes at most")
    run_coroutine(_edit(name, Edit(document, request), format_))


async def _edit(name: str, given: Edit, format_: Format) -> None:
    async with bounded(EDIT_SECONDS):
        client, _ = await connect()
        run = await find_run(client, name)
        _see_that_it_goes_on(run)
        changed = changes_of(run.id, await _standing(run), given.request)
        state = await _state(client, run)
        await _send(run, given.document)
    if format_ is Format.JSON:
        put_json(_document(run, changed, state))
    else:
        put(f"edited {run.id}: {', '.join(changed)}")
    say(*consequences(state), f"'triage show {shlex.quote(run.id)}' shows how it goes on")


async def _state(client: Client, run: Run) -> StateView | CliError:
    """Return where the run stands, or why nobody can say: an edit waits for a worker, too."""
    try:
        return StateView.model_validate_json(await ask_run(client, run, names.QUERY_STATE))
    except ValidationError:
        return RefusedError("the worker runs another version of this program")
    except CliError as error:
        return error


def _see_that_it_goes_on(run: Run) -> None:
    if run.description.workflow_type != names.ISSUE_TRIAGE:
        raise RefusedError(f"{run.id} is no triage: there is nothing to edit")
    if not run.is_open:
        raise RefusedError(
            f"{run.id} has ended: nothing was sent",
            f"'triage resume {shlex.quote(run.id)} --request FILE' continues it with another "
            "request",
        )


async def _standing(run: Run) -> TriageRequest:
    """Return the run's request as it stands by now."""
    history = await run.handle.fetch_history(rpc_timeout=RPC_TIMEOUT)
    try:
        return standing_request(history.events)
    except ContractError:
        raise RefusedError(f"the request of {run.id} cannot be read here") from None


def changes_of(workflow_id: str, standing: TriageRequest, given: TriageRequest) -> tuple[str, ...]:
    """Return which parts of a run's request an edit changes.

    Raises:
        InputError: it is another request.
        RefusedError: it changes nothing.
    """
    if given.request_id != standing.request_id:
        raise InputError(
            f"{workflow_id} is about the request {exact(standing.request_id)}, not about"
            f" {exact(given.request_id)}: nothing was sent",
            "an edit keeps the run's request_id; 'triage start' starts a run of another request",
        )
    changed = changed_fields(standing, given)
    if not changed:
        raise RefusedError(f"this is the request of {workflow_id} already: nothing was sent")
    return changed


async def _send(run: Run, document: JsonValue) -> None:
    try:
        await run.handle.signal(names.SIGNAL_EDIT, document, rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        raise RefusedError(f"{run.id} has just ended: nothing was sent") from None


def consequences(state: StateView | CliError) -> list[str]:
    """Say what becomes of what the run was doing when the edit was sent."""
    if isinstance(state, NoWorkerError):
        return [NO_WORKER]
    if isinstance(state, CliError):
        return ["what the run was doing is not known"]
    again = (
        f"it decides anew, with the steps that it has left ({state.steps} are used); what it then"
        " wants to write needs an approval of its own"
    )
    if state.pending is not None:
        name = exact(state.pending.operation_id)
        return [f"{name} at version {state.pending.version} is withdrawn and never written", again]
    if state.status is Status.TOOL_PENDING:
        return ["a call that is under way is finished first", again]
    return ["nothing was waiting for an approval", again]


def _document(
    run: Run, changed: tuple[str, ...], state: StateView | CliError
) -> dict[str, JsonValue]:
    pending = None if isinstance(state, CliError) else state.pending
    return {
        "workflow_id": run.id,
        "changed": [*changed],
        "withdrawn": pending.model_dump(mode="json") if pending else None,
    }
