"""`triage start`: admits a request from a file and starts its run, once."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue
from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from triage.cli import following
from triage.cli.clients import ID_PREFIX, RPC_TIMEOUT, bounded, connect, has_worker
from triage.cli.errors import InputError, RefusedError
from triage.cli.inputs import MAX_PAYLOAD_BYTES, STDIN, checked_workflow_id, read_json
from triage.cli.output import Format, put, put_json, say
from triage.cli.running import run
from triage.contracts import names
from triage.contracts.canonical import canonical_json
from triage.contracts.options import parse_options
from triage.contracts.request import parse_request
from triage.contracts.response import TriageResponse
from triage.settings import Settings

_ID_HINT: Final = "choose another with --id"


@dataclass(frozen=True, slots=True)
class Order:
    """What the command line says."""

    request: Path
    mode: str | None
    model: str | None
    options: Path | None
    workflow_id: str | None


@dataclass(frozen=True, slots=True)
class Checked:
    """An order that may be started: an id and one or two JSON inputs."""

    workflow_id: str
    request_id: str
    inputs: list[JsonValue]


def start(order: Order, *, wait: bool, format_: Format) -> None:
    """Start the run of `order`.

    Raises:
        CliError: the request is not one, its id is taken, or Temporal cannot be reached.
    """
    run(_start(check(order), wait=wait, format_=format_))


def check(order: Order) -> Checked:
    """Hold an order to the contracts before anything is sent.

    Raises:
        InputError: a file cannot be read, or the id cannot be used.
        ContractError: a document is not what it should be.
    """
    if STDIN == order.request == order.options:
        raise InputError("only one of the two files can be standard input")
    document = read_json(order.request, "request")
    request = parse_request(document)
    options = _options(order)
    workflow_id = order.workflow_id or f"{ID_PREFIX}{request.request_id}"
    inputs = [document, options] if options else [document]
    if any(len(canonical_json(value)) > MAX_PAYLOAD_BYTES for value in inputs):
        limit = MAX_PAYLOAD_BYTES // 1024 // 1024
        raise InputError(f"the request is too large: Temporal takes {limit} MiB at most")
    return Checked(checked_workflow_id(workflow_id, _ID_HINT), request.request_id, inputs)


def _options(order: Order) -> dict[str, JsonValue]:
    """Read the options file; --mode and --model win over it."""
    given = {} if order.options is None else read_json(order.options, "options")
    flags = {"mode": order.mode, "model": order.model}
    chosen = {name: value for name, value in flags.items() if value is not None}
    merged = {**given, **chosen} if isinstance(given, dict) else given
    parse_options(merged)
    return merged if isinstance(merged, dict) else {}


async def _start(checked: Checked, *, wait: bool, format_: Format) -> None:
    async with bounded():
        client, settings = await connect()
        handle = await begin(client, settings, checked)
    if not wait:
        async with bounded():
            _tell_started(handle, checked, format_)
            if not await has_worker(client, settings.task_queue):
                say(following.waiting_for_worker(settings))
        return
    say(f"started {handle.id}")
    response = await following.follow(client, settings, handle)
    following.put_response(response, format_)


async def begin(
    client: Client, settings: Settings, checked: Checked
) -> WorkflowHandle[Any, TriageResponse]:
    """Start a new run; one that has this id, running or ended, is never taken for it.

    Raises:
        RefusedError: there is one.
    """
    try:
        return await client.start_workflow(
            names.ISSUE_TRIAGE,
            args=checked.inputs,
            id=checked.workflow_id,
            task_queue=settings.task_queue,
            result_type=TriageResponse,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            rpc_timeout=RPC_TIMEOUT,
        )
    except WorkflowAlreadyStartedError:
        shown = f"'triage show {shlex.quote(checked.workflow_id)}' shows it"
        raise RefusedError(
            f"a run {checked.workflow_id} exists already; nothing was started",
            f"{shown}; {_ID_HINT}",
        ) from None


def _tell_started(
    handle: WorkflowHandle[Any, TriageResponse], checked: Checked, format_: Format
) -> None:
    if format_ is Format.JSON:
        document = {"workflow_id": handle.id, "request_id": checked.request_id}
        put_json({**document, "run_id": handle.first_execution_run_id})
    else:
        put(handle.id)
    say(f"started; 'triage show {shlex.quote(handle.id)}' shows where it stands")
