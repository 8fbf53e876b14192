"""Says what was pinned of who may approve, so that nobody is told to approve in vain."""

from __future__ import annotations

from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client
from temporalio.service import RPCError

from triage.cli.briefing import too_few
from triage.cli.clients import RPC_TIMEOUT, Run
from triage.continuing import first_run_id
from triage.contracts.names import ACTIVITY_PIN_RUN_CONTEXT
from triage.settings import Settings
from triage.story.calls import local_call
from triage.story.payloads import Fields

FIRST_EVENTS: Final = 50
"""The trust is pinned before anything is decided."""


async def needs_signature(client: Client, settings: Settings, run: Run) -> bool:
    """Return whether only signed approvals count, by what was pinned when the run began.

    Where that cannot be read, these settings have to do: the run may be held to others.
    """
    pinned = await pinned_context(client, run)
    return signs_by_settings(settings) if pinned is None else not pinned.flag("local_trust")


async def who_may_in_vain(client: Client, run: Run, required: int) -> tuple[str, ...] | None:
    """Return who may approve, where they are fewer than have to.

    None where there may be enough, and where it cannot be read.
    """
    pinned = await pinned_context(client, run)
    if pinned is None:
        return None
    authors = (pinned.text("author"), pinned.text("claimed_author"))
    return too_few(pinned.fields("policy").texts("approvers"), authors, required)


def signs_by_settings(settings: Settings) -> bool:
    """Return whether these settings are those of somebody who signs."""
    if settings.local_trust is None:
        return settings.keyring is not None
    return not settings.local_trust


async def pinned_context(client: Client, run: Run) -> Fields | None:
    """Return what a run is held to since it began; None where that cannot be read."""
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
            return done.result if done.result.readable else None
    return None
