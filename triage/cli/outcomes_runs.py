"""Reads what ended runs suggested: their answers and where their issues are, from Temporal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution as ExecutionRef
from temporalio.api.enums.v1 import HistoryEventFilterType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client, WorkflowExecution

from triage.cli.clients import RPC_TIMEOUT, bounded, connect
from triage.contracts import names
from triage.contracts.options import DEFAULT_REPOSITORY
from triage.ingest.backfill import PREFIX
from triage.settings import Settings
from triage.story.payloads import UNREADABLE, Fields, read
from triage.trackers.outcomes import Mark, component_of

_ALL: Final = HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT
_CLOSING: Final = HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT
MAX_RUNS: Final = 2_000
SECONDS: Final = 300.0
_ENDED: Final = f"WorkflowType = '{names.ISSUE_TRIAGE}' AND ExecutionStatus = 'Completed'"


async def suggestions(since: datetime) -> list[Mark]:
    """Return the labels in the answers of runs that ended since then; the latest `MAX_RUNS` runs.

    What cannot be read here, such as an encrypted answer, is left out. So are a backfill's runs:
    they suggested nothing to anybody, and would stand in front of those that did.

    Raises:
        UnreachableError: Temporal does not answer.
    """
    async with bounded(SECONDS):
        client, settings = await connect()
        found: list[Mark] = []
        async for execution in _ended(client, since):
            found += await _marks(client, settings, execution)
    return found


async def _ended(client: Client, since: datetime) -> AsyncIterator[WorkflowExecution]:
    query = f"{_ENDED} AND CloseTime >= '{since.isoformat()}'"
    left = MAX_RUNS
    async for execution in client.list_workflows(query, rpc_timeout=RPC_TIMEOUT):
        if execution.id.startswith(PREFIX):
            continue
        yield execution
        if (left := left - 1) == 0:
            return


async def _marks(client: Client, settings: Settings, run: WorkflowExecution) -> list[Mark]:
    start = await _event(client, run, last=False)
    end = await _event(client, run, last=True)
    if start is None or end is None:
        return []
    return marks_of(run.id, run.close_time, start, end, settings.tracker)


async def _event(client: Client, run: WorkflowExecution, *, last: bool) -> HistoryEvent | None:
    """Return the first or the last event of an execution."""
    request = GetWorkflowExecutionHistoryRequest(
        namespace=client.namespace,
        execution=ExecutionRef(workflow_id=run.id, run_id=run.run_id),
        maximum_page_size=1,
        history_event_filter_type=_CLOSING if last else _ALL,
    )
    reply = await client.workflow_service.get_workflow_execution_history(
        request, timeout=RPC_TIMEOUT
    )
    return reply.history.events[0] if reply.history.events else None


def marks_of(
    workflow_id: str,
    ended_at: datetime | None,
    start: HistoryEvent,
    end: HistoryEvent,
    tracker: str,
) -> list[Mark]:
    """Return the labels of a run's answer, by its first and its last event (pure)."""
    given = [read(p) for p in start.workflow_execution_started_event_attributes.input.payloads]
    answers = [read(p) for p in end.workflow_execution_completed_event_attributes.result.payloads]
    if not given or not answers or UNREADABLE in (*given, *answers) or ended_at is None:
        return []
    request, answer = Fields(given[0]), Fields(answers[0])
    context = Fields(given[1]).fields("context") if len(given) > 1 else Fields()
    labels = answer.texts("labels")
    return [
        Mark(
            workflow_id=workflow_id,
            tracker=context.text("tracker") or tracker,
            repository=context.text("repository") or DEFAULT_REPOSITORY,
            issue=context.text("issue") or request.text("request_id"),
            label=label,
            component=component_of(labels),
            at=ended_at,
            beside=labels,
        )
        for label in labels
    ]
