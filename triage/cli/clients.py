"""Reaches Temporal from a command, within a bounded time.

Why it exists: no command may hang. A server that is gone, a namespace that does not exist and a
queue that nobody polls each end as a sentence that says which it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.common import RawValue
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode

from triage import connection
from triage.cli.errors import InputError, RefusedError, UnreachableError
from triage.cli.orders import ID_PREFIX
from triage.settings import Settings, load_settings

ANSWER_SECONDS: Final = 12.0
"""How long a command waits for Temporal as a whole."""

RPC_TIMEOUT: Final = timedelta(seconds=5)
QUERY_TIMEOUT: Final = timedelta(seconds=6)
NO_WORKER_HINT: Final = "start one with 'triage up' or 'python -m worker', then ask again"
BUSY: Final = "no worker answered in time, though one polls"
BUSY_HINT: Final = "it may wait for its database or for the tracker: ask again, or look at its log"

LONG_POLL: Final = timedelta(seconds=60)
"""How long the server lets a worker wait for work before the worker asks again."""

_STALE_POLLER: Final = timedelta(seconds=90)
_NO_ANSWER: Final = frozenset(
    {
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.FAILED_PRECONDITION,
        RPCStatusCode.UNAVAILABLE,
        # Somebody else's question waits for an answer already.
        RPCStatusCode.RESOURCE_EXHAUSTED,
    }
)


class NoWorkerError(UnreachableError):
    """The server answers, but no worker does."""

    def __init__(self, message: str = "no worker answered", hint: str = NO_WORKER_HINT) -> None:
        super().__init__(message, hint)


@dataclass(frozen=True, slots=True)
class Run:
    """A workflow execution that exists."""

    handle: WorkflowHandle[Any, Any]
    description: WorkflowExecutionDescription

    @property
    def id(self) -> str:
        """The workflow id."""
        return self.handle.id

    @property
    def is_open(self) -> bool:
        """Whether it still runs."""
        return self.description.status is WorkflowExecutionStatus.RUNNING

    @property
    def execution_status(self) -> str:
        """Temporal's word for where the execution stands, in small letters."""
        status = self.description.status
        return "unknown" if status is None else status.name.lower()


@asynccontextmanager
async def bounded(seconds: float = ANSWER_SECONDS) -> AsyncIterator[None]:
    """End whatever is inside after `seconds`.

    Raises:
        UnreachableError: time ran out.
    """
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        message = f"Temporal did not answer within {seconds:.0f} seconds"
        raise UnreachableError(message, "run 'triage doctor' to see what is reachable") from None


async def connect() -> tuple[Client, Settings]:
    """Load the settings and connect."""
    settings = load_settings()
    silence_core()
    return await connection.connect(settings), settings


def silence_core() -> None:
    """Keep the SDK's core from printing: it writes to stdout, which belongs to the answer."""
    runtime = Runtime(telemetry=TelemetryConfig(logging=None))
    Runtime.set_default(runtime, error_if_already_set=False)


async def find_run(client: Client, name: str) -> Run:
    """Find the run whose workflow id is `name`, or ``triage-<name>``.

    Raises:
        InputError: no workflow can have such an id.
        RefusedError: there is none.
    """
    if not name or not name.isprintable():
        raise InputError("this is not the id of a run: it is empty or holds control characters")
    for workflow_id in dict.fromkeys((name, f"{ID_PREFIX}{name}")):
        handle = client.get_workflow_handle(workflow_id)
        try:
            return Run(handle, await handle.describe(rpc_timeout=RPC_TIMEOUT))
        except RPCError as error:
            if error.status not in {RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT}:
                raise
    raise RefusedError(
        f"there is no run {name}, nor {ID_PREFIX}{name}", "'triage list' shows the runs"
    )


async def ask(
    handle: WorkflowHandle[Any, Any], query: str, patience: timedelta = QUERY_TIMEOUT
) -> bytes:
    """Return a query's answer as JSON bytes, within `patience`.

    Raises:
        NoWorkerError: nobody answered in time.
        RefusedError: the run could not answer.
    """
    try:
        answer = await handle.query(query, result_type=RawValue, rpc_timeout=patience)
    except WorkflowQueryFailedError as error:
        raise RefusedError(f"the run could not answer: {error.message}") from None
    except RPCError as error:
        if error.status in _NO_ANSWER:
            raise NoWorkerError from None
        raise
    data: bytes = answer.payload.data
    return data or b"null"


def failed_attempts(description: WorkflowExecutionDescription) -> int:
    """Return how often in a row a worker has failed to carry the run on."""
    attempt: int = description.raw_description.pending_workflow_task.attempt
    return max(attempt - 1, 0)


async def poller_ages(client: Client, queue: str, kind: TaskQueueType.ValueType) -> list[timedelta]:
    """Return how long ago each worker asked `queue` for work, the latest first.

    An idle one asks every `LONG_POLL`, and the server does not notice that one was killed: it is
    here until it has not asked for longer than any that lives, and 90 seconds at most.
    """
    reply = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
        ),
        timeout=RPC_TIMEOUT,
    )
    now = datetime.now(UTC)
    ages = sorted(now - one.last_access_time.ToDatetime(tzinfo=UTC) for one in reply.pollers)
    # The server's clock may be ahead of ours.
    return [max(age, timedelta(0)) for age in ages if age <= _STALE_POLLER]


async def has_worker(client: Client, queue: str) -> bool:
    """Whether a worker that carries runs on polls `queue`."""
    return bool(await poller_ages(client, queue, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW))


async def ask_run(
    client: Client, run: Run, query: str, patience: timedelta = QUERY_TIMEOUT
) -> bytes:
    """Return a query's answer, at once if it is plain that nobody will answer.

    A run does not answer while a local activity of it is under way.

    Raises:
        NoWorkerError: nobody polls the run's queue, or nobody answered in time.
        RefusedError: the run could not answer.
    """
    queue = run.description.task_queue
    if not await has_worker(client, queue):
        raise NoWorkerError(f"no worker polls the queue {queue}")
    try:
        return await ask(run.handle, query, patience)
    except NoWorkerError:
        raise NoWorkerError(BUSY, BUSY_HINT) from None
