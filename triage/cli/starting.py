"""`triage start`: starts the run of a request, once."""

from __future__ import annotations

import shlex
from typing import Any, Final

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from triage.cli import following
from triage.cli.clients import RPC_TIMEOUT, bounded, connect, has_worker
from triage.cli.errors import RefusedError
from triage.cli.orders import ID_HINT, Checked
from triage.cli.output import Format, put, put_json, say
from triage.cli.running import run
from triage.continuing import describe, newest_of
from triage.contracts import names
from triage.contracts.response import TriageResponse
from triage.faults import Point, reach
from triage.settings import Settings
from triage.storage.under_way import UnderWay

ANYWAY: Final = "--anyway starts another one beside it"


def start(checked: Checked, *, wait: bool, format_: Format, beside: UnderWay | None = None) -> None:
    """Start a run, and follow it if its response is waited for.

    Args:
        checked: what to start.
        wait: whether its response is waited for.
        format_: how to print the answer.
        beside: beside which run nothing is started while that goes on; None if anything may be.

    Raises:
        CliError: its id is taken, its issue has a run, or Temporal cannot be reached.
    """
    run(_start(checked, wait=wait, format_=format_, beside=beside))


async def _start(checked: Checked, *, wait: bool, format_: Format, beside: UnderWay | None) -> None:
    async with bounded():
        client, settings = await connect()
        if beside is not None:
            await _see_that_none_goes_on(client, beside)
        handle = await begin(client, settings, checked)
    if not wait:
        async with bounded():
            _tell_started(handle, checked, format_)
            if not await has_worker(client, settings.task_queue):
                say(following.waiting_for_worker(settings))
        return
    say(f"started {handle.id}")
    response = await following.follow(client, settings, handle)
    following.put_response(response, handle.id, format_)


async def begin(
    client: Client, settings: Settings, checked: Checked, *, hint: str = ID_HINT
) -> WorkflowHandle[Any, TriageResponse]:
    """Start a new run; one that has this id, running or ended, is never taken for it.

    Args:
        client: of the server.
        settings: name the queue.
        checked: what to start.
        hint: what to do if the id is taken, beside looking at the run that has it.

    Raises:
        RefusedError: there is one.
    """
    reach(Point.START_BEFORE_RUN)
    try:
        handle = await client.start_workflow(
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
            f"{shown}; {hint}" if hint else shown,
        ) from None
    reach(Point.START_AFTER_RUN)
    return handle


async def _see_that_none_goes_on(client: Client, beside: UnderWay) -> None:
    """Return unless a delivery about the same issue has a run that goes on, or is getting one.

    Raises:
        RefusedError: it has.
    """
    if beside.is_starting:
        raise RefusedError(
            "a delivery about this issue is about to be started; nothing else was",
            f"'triage list' shows its run in a moment; {ANYWAY}",
        )
    if beside.workflow_id is None:
        return
    newest = await newest_of(client, beside.workflow_id)
    found = await describe(newest)
    if found is not None and found.status is WorkflowExecutionStatus.RUNNING:
        raise RefusedError(
            f"a run about this issue is under way: {newest.id}; nothing was started",
            f"'triage show {shlex.quote(newest.id)}' shows it; {ANYWAY}",
        )


def _tell_started(
    handle: WorkflowHandle[Any, TriageResponse], checked: Checked, format_: Format
) -> None:
    if format_ is Format.JSON:
        document = {"workflow_id": handle.id, "request_id": checked.request_id}
        put_json({**document, "run_id": handle.first_execution_run_id})
    else:
        put(handle.id)
    say(f"started; 'triage show {shlex.quote(handle.id)}' shows where it stands")
