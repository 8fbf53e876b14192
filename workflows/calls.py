"""How the workflows call activities: one place for timeouts, retries and queues.

Every activity has a bounded start-to-close, a bounded number of attempts and a bounded total.
Temporal retries what infrastructure broke; what a model or a tool did comes back as data.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, FailureError

with workflow.unsafe.imports_passed_through():
    from triage.contracts import names
    from triage.contracts.base import Contract
    from triage.contracts.failures import FailureClass
    from triage.contracts.payloads import (
        DecideRequest,
        DecideResult,
        PinRequest,
        Preview,
        PreviewRequest,
        ReadRequest,
        ReadResult,
        RunContext,
        ToolSnapshot,
        WriteRequest,
        WriteResult,
    )
    from triage.contracts.verification import VerifyRequest, VerifyResult

Result = TypeVar("Result", bound=Contract)

GRACE: Final = timedelta(seconds=5)
VERIFY_TIMEOUT: Final = timedelta(seconds=10)
WRITE_TIMEOUT: Final = timedelta(seconds=90)
WRITE_HEARTBEAT: Final = timedelta(seconds=10)
INFRASTRUCTURE: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=200),
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=20,
)
INFRASTRUCTURE_TOTAL: Final = timedelta(minutes=10)
LOCAL_PAUSE: Final = timedelta(seconds=1)
"""A longer pause of a local activity is a timer, and the run is not busy meanwhile.

While it is, it answers no query (see `triage.early_queries`), and holds up a workflow task.
"""
WRITE_TOTAL: Final = timedelta(minutes=30)
WRITE_RETRY: Final = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    maximum_interval=timedelta(seconds=10),
    maximum_attempts=200,
)
"""A put-off write waits for its quiet period; a worker lost late in it must not cost a minute."""


async def local(
    name: str, argument: Contract, result: type[Result], retry: RetryPolicy = INFRASTRUCTURE
) -> Result:
    """Run a quick, idempotent activity inside the workflow task; it costs one event.

    Each attempt keeps its deadline itself, as all local activities do: the SDK's timer for it
    outlives an attempt that fails, and would end a later one.
    """
    done: Result = await workflow.execute_local_activity(
        name,
        argument,
        result_type=result,
        schedule_to_close_timeout=INFRASTRUCTURE_TOTAL,
        retry_policy=retry,
        local_retry_threshold=LOCAL_PAUSE,
    )
    return done


async def remote(
    name: str,
    argument: Contract,
    result: type[Result],
    deadline: timedelta,
    retry: RetryPolicy = INFRASTRUCTURE,
) -> Result:
    """Run an activity that keeps `deadline` itself; the server allows it a grace on top."""
    done: Result = await workflow.execute_activity(
        name,
        argument,
        result_type=result,
        start_to_close_timeout=deadline + GRACE,
        schedule_to_close_timeout=INFRASTRUCTURE_TOTAL,
        retry_policy=retry,
    )
    return done


async def pin(request: PinRequest) -> RunContext:
    """Store the request and pin what the run is held to."""
    return await local(names.ACTIVITY_PIN_RUN_CONTEXT, request, RunContext)


async def preview(request: PreviewRequest) -> Preview:
    """Read what an operation would change, to show it to a reviewer."""
    return await local(names.ACTIVITY_PREVIEW_OPERATION, request, Preview)


async def verify_approval(request: VerifyRequest) -> VerifyResult:
    """Verify a signed approval.

    Never as a local activity: an update waits for it, and a worker that is lost between the marker
    of a local activity and the update's answer leaves a history that no worker can go on with.
    """
    return await remote(names.ACTIVITY_VERIFY_APPROVAL, request, VerifyResult, VERIFY_TIMEOUT)


async def decide(request: DecideRequest, timeout_ms: int, *, is_local: bool) -> DecideResult:
    """Ask the model for one decision; one that asks nobody, inside the workflow task."""
    if is_local:
        return await local(names.ACTIVITY_DECIDE, request, DecideResult)
    deadline = timedelta(milliseconds=timeout_ms)
    return await remote(names.ACTIVITY_DECIDE, request, DecideResult, deadline)


async def read(tool: ToolSnapshot, request: ReadRequest, attempts: int) -> ReadResult:
    """Run a read tool under its own timeout and retry rule, at most `attempts` times.

    Raises:
        FailureError: the tool timed out or failed, after the retries that its rule permits.
    """
    retry = RetryPolicy(initial_interval=timedelta(milliseconds=100), maximum_attempts=attempts)
    if tool.local:
        return await local(tool.name, request, ReadResult, retry)
    deadline = timedelta(milliseconds=tool.timeout_ms)
    return await remote(tool.name, request, ReadResult, deadline, retry)


async def write(tool: str, request: WriteRequest) -> WriteResult:
    """Send an approved operation through the ledger, on the queue of the write workers.

    Raises:
        ActivityError: the outcome could not be learned; the write may have happened.
    """
    result: WriteResult = await workflow.execute_activity(
        tool,
        request,
        task_queue=names.writes_queue(workflow.info().task_queue),
        result_type=WriteResult,
        start_to_close_timeout=WRITE_TIMEOUT,
        schedule_to_close_timeout=WRITE_TOTAL,
        heartbeat_timeout=WRITE_HEARTBEAT,
        retry_policy=WRITE_RETRY,
    )
    return result


def failure_of(error: FailureError) -> FailureClass:
    """Map a failed call to its class; a lost worker and a slow tool are both timeouts.

    What a local activity raised for good arrives as it is, without an `ActivityError` around it.
    """
    cause = error.cause if isinstance(error, ActivityError) else error
    if isinstance(cause, ApplicationError) and cause.type != FailureClass.TOOL_TIMEOUT:
        return FailureClass.TOOL_ERROR
    return FailureClass.TOOL_TIMEOUT
