"""Going back in the history of a run, as an operator does with `temporal workflow reset`."""

from __future__ import annotations

import uuid

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client

from tests.workflow.runs import Run
from triage.contracts.response import TriageResponse


async def reset(client: Client, run: Run) -> Run:
    """Reset the latest run of a workflow to the end of its first task, and return what goes on."""
    execution = WorkflowExecution(
        workflow_id=run.id, run_id=(await run.handle.describe()).run_id or ""
    )
    completed = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    ended = next(event for event in await run.events() if event.event_type == completed)
    await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=execution,
            reason="test",
            workflow_task_finish_event_id=ended.event_id,
            request_id=uuid.uuid4().hex,
        )
    )
    return Run(client.get_workflow_handle(run.id, result_type=TriageResponse))
