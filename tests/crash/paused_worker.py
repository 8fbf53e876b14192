"""A production worker that stops itself at one named place, for tests only.

Why it exists: nothing that production reads can arm a fault point, so a process that shall stop at
one has to begin here. What runs is `worker.main`, whole, and the places are those of its own code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final
from unittest import mock

from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    StartActivityInput,
    StartLocalActivityInput,
    Worker,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import ActivityHandle

import worker
from tests.crash.places import COMMAND, Stopper
from triage import faults


class _Deaf(Interceptor):
    """Lets no body hear that it is cancelled.

    Waking up, the SDK learns that an attempt is over and cancels it, mostly before it does any
    harm. That is luck; what must hold without it is the ledger.
    """

    def intercept_activity(
        self,
        next: ActivityInboundInterceptor,  # noqa: A002 - the SDK names it
    ) -> ActivityInboundInterceptor:
        """Wrap the body of every activity."""
        return _DeafBody(next)


class _DeafBody(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401 - the SDK's own
        body = asyncio.ensure_future(super().execute_activity(input))
        while not body.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({body})
        return body.result()


class _Commands(Interceptor):
    """Tells of what workflow tasks ask for: no fault point may be in the code that replays."""

    def __init__(self, stopper: Stopper) -> None:
        self._stopper = stopper

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 - the SDK names it
    ) -> type[WorkflowInboundInterceptor]:
        """Wrap what workflow tasks ask for."""
        stopper = self._stopper

        class Outbound(WorkflowOutboundInterceptor):
            def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:  # noqa: A002 - the SDK's own
                stopper.reach(COMMAND, input.activity)
                return super().start_activity(input)

            def start_local_activity(self, input: StartLocalActivityInput) -> ActivityHandle[Any]:  # noqa: A002 - the SDK's own
                stopper.reach(COMMAND, input.activity)
                return super().start_local_activity(input)

        class Inbound(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                super().init(Outbound(outbound))

        return Inbound


_FEW_POLLS: Final[dict[str, Any]] = {
    "max_concurrent_activities": 1,
    "max_concurrent_activity_task_polls": 1,
    "max_concurrent_workflow_task_polls": 1,
    "max_cached_workflows": 0,
}
"""A frozen process still holds its open polls, and the server gives it tasks, which then time out.

One that runs workflows gets at most one task in this way. One that only writes gets the next
attempt, too, and carries it out as soon as it wakes up: that is the more dangerous one.
"""


@contextmanager
def armed(stopper: Stopper) -> Iterator[None]:
    """Arm this process, and let its workers hold few polls."""
    disarm = faults.arm(stopper.reach)
    with mock.patch.object(worker, "Worker", partial(_watched, _Commands(stopper))):
        yield
    disarm()


def _watched(commands: _Commands, *args: Any, **options: Any) -> Worker:  # noqa: ANN401 - the SDK's own
    if options.get("workflows"):
        options |= _FEW_POLLS
    options["max_concurrent_activity_task_polls"] = 1
    options["interceptors"] = [_Deaf(), *options.get("interceptors", ()), commands]
    return Worker(*args, **options)
