"""Says whether a run counts unsigned approvals, so that nobody is told to type one in vain."""

from __future__ import annotations

from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client
from temporalio.service import RPCError

from triage.cli.clients import RPC_TIMEOUT, Run
from triage.continuing import first_run_id
from triage.contracts.names import ACTIVITY_PIN_RUN_CONTEXT
from triage.settings import Settings
from triage.story.calls import local_call

FIRST_EVENTS: Final = 50
"""The trust is pinned before anything is decided."""


async def needs_signature(client: Client, settings: Settings, run: Run) -> bool:
    """Return whether only signed approvals count, by what was pinned when the run began.

    Where that cannot be read, these settings have to do: the run may be held to others.
    """
    pinned = await _pinned_trust(client, run)
    return signs_by_settings(settings) if pinned is None else not pinned


def signs_by_settings(settings: Settings) -> bool:
    """Return whether these settings are those of somebody who signs."""
    if settings.local_trust is None:
        return settings.keyring is not None
    return not settings.local_trust


async def _pinned_trust(client: Client, run: Run) -> bool | None:
    request = GetWorkflowExecutionHistoryRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=run.id, run_id=first_run_id(run.description)),
        maximum_page_size=FIRST_EVENTS,
    )
    try:
        reply = await client.workflow_service.get_workflow_execution_history(
            request, timeout=RPC_TIMEOUT
        )
    except RPCError:
        return None
    for event in reply.history.events:
        done = local_call(event)
        if done is not None and done.call.name == ACTIVITY_PIN_RUN_CONTEXT:
            return done.result.flag("local_trust") if done.result.readable else None
    return None
