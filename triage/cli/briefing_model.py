"""Reads from a run's history what the model answered last, and why it says so.

Why it exists: the run's state has what was decided and not the model's words. They are in the
history, near its end, which is read backwards and only so far.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client
from temporalio.service import RPCError

from triage.cli.briefing import Gone, ModelText
from triage.cli.clients import RPC_TIMEOUT, Run
from triage.contracts.names import ACTIVITY_DECIDE
from triage.contracts.payloads import DecideOutcome
from triage.story.calls import Ending, answer_beside, local_call
from triage.story.payloads import Fields, first

MAX_EVENTS: Final = 2_000
PAGE: Final = 200
TOO_FAR: Final = f"not among the latest {MAX_EVENTS:,} events; 'triage explain' tells it"


async def model_text(client: Client, run: Run) -> ModelText | Gone:
    """Return the model's latest decision, or why it cannot be shown."""
    results: dict[int, Fields] = {}
    try:
        async for event in _backwards(client, run):
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                done = event.activity_task_completed_event_attributes
                results[done.scheduled_event_id] = Fields(first(done.result))
                continue
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                found = _answer(event, results.pop(event.event_id, None))
            else:
                found = _local_answer(event)
            if found is not None:
                return found
    except RPCError:
        return Gone("the history could not be read")
    return Gone(TOO_FAR)


async def _backwards(client: Client, run: Run) -> AsyncIterator[HistoryEvent]:
    """Yield the latest events of a chain of executions, the latest first."""
    run_id, token, count = run.description.run_id, b"", 0
    while run_id and count < MAX_EVENTS:
        request = GetWorkflowExecutionHistoryReverseRequest(
            namespace=client.namespace,
            execution=WorkflowExecution(workflow_id=run.id, run_id=run_id),
            maximum_page_size=PAGE,
            next_page_token=token,
        )
        reply = await client.workflow_service.get_workflow_execution_history_reverse(
            request, timeout=RPC_TIMEOUT
        )
        for event in reply.history.events:
            count += 1
            yield event
        token = reply.next_page_token
        if not token:
            run_id = _execution_before(reply.history.events[-1]) if reply.history.events else ""


def _execution_before(event: HistoryEvent) -> str:
    """Return the execution that went on as this one, if this is the event of its start."""
    return event.workflow_execution_started_event_attributes.continued_execution_run_id


def _answer(scheduled: HistoryEvent, result: Fields | None) -> ModelText | Gone | None:
    """Return what one call of the model brought; None if it was another call, or no decision."""
    call = scheduled.activity_task_scheduled_event_attributes
    if call.activity_type.name != ACTIVITY_DECIDE or result is None:
        return None
    return _decision(Fields(first(call.input)), result)


def _local_answer(event: HistoryEvent) -> ModelText | Gone | None:
    """Return what a call of a model that asks nobody brought, by the marker that records it."""
    done = local_call(event)
    if done is not None:
        done = answer_beside(done) or done
    if done is None or done.call.name != ACTIVITY_DECIDE or done.ending is not Ending.COMPLETED:
        return None
    return _decision(done.call.request, done.result)


def _decision(asked: Fields, result: Fields) -> ModelText | Gone | None:
    if not result.readable:
        return Gone("the model's answer is not readable here")
    if result.text("outcome") != DecideOutcome.DECISION:
        return None
    given = result.fields("decision")
    return ModelText(
        kind=given.text("kind"),
        route=given.text("route"),
        owner=given.text("owner"),
        labels=given.texts("labels"),
        evidence_ids=given.texts("evidence_ids"),
        reason=given.text("reason"),
        request_digest=asked.text("request_digest"),
    )
