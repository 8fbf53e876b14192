"""A decision around each deadline of a wait: a second before it, in one task with it, and after it.

The server's clock is moved on to just before or just after the deadline. In one task with it means
that nobody worked while the deadline passed and the decision came, so that the run meets both at
once. That the very moment of the deadline is too late is shown where no clock runs: in
tests/unit/workflows/test_review_desk.py.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.update.v1 import UpdateRef
from temporalio.api.workflowservice.v1 import PollWorkflowExecutionUpdateRequest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment

from tests.reliability.answers import ACCEPTED, CLOSED, only_closed
from tests.reliability.signing import SCRIPT
from tests.workflow.decisions import OPERATION
from tests.workflow.runs import SECONDS, Run, envelope, eventually, outcome
from tests.workflow.world import World, altered_world
from triage.contracts.approval import ReviewAnswer
from triage.contracts.response import Status
from triage.contracts.state import PendingView

DEADLINES: Final = {
    "reminder": timedelta(hours=24),
    "escalation": timedelta(hours=48),
    "expiry": timedelta(hours=72),
}
ORDER: Final = list(DEADLINES)
SECOND: Final = timedelta(seconds=1)
HOUR: Final = timedelta(hours=1)
TRIES: Final = 5
FIRED: Final = EventType.EVENT_TYPE_TIMER_FIRED
EXPIRED: Final = (Status.REVIEW_REQUIRED, "approval_required")

each_deadline = pytest.mark.parametrize("deadline", DEADLINES)
each_way = pytest.mark.parametrize("way", ["signal", "update"])


@dataclass(frozen=True)
class Waiting:
    """A run that waits on a clock of its own, and its approval by signal or by update."""

    run: Run
    env: WorkflowEnvironment
    pending: PendingView
    way: str
    update_id: str

    async def now(self) -> datetime:
        """The run's time."""
        return await self.env.get_current_time(self.run.handle)

    def moment(self, deadline: str) -> datetime:
        """When a deadline is."""
        return datetime.fromisoformat(self.pending.proposed_at) + DEADLINES[deadline]

    async def move_to(self, moment: datetime) -> None:
        """Move the run's clock on."""
        async with asyncio.timeout(SECONDS):
            await self.env.fast_forward(self.run.handle, moment - await self.now())

    async def approve(self) -> str:
        """Approve, and return what came of it as far as its sender is told."""
        review: dict[str, Any] = dict(envelope(self.pending))
        try:
            if self.way == "signal":
                await self.run.signal("approve", review)
                return ""
            answer: ReviewAnswer = await self.run.handle.execute_update(
                "review",
                {**review, "verdict": "approve"},
                id=self.update_id,
                result_type=ReviewAnswer,
            )
        except WorkflowUpdateFailedError as error:
            return str(getattr(error.cause, "type", error.cause))
        except RPCError as error:
            only_closed(error)
            return CLOSED
        return answer.code

    async def arrived(self) -> bool:
        """Whether the server has the approval, with or without anybody who looks at it."""
        if self.way == "signal":
            kinds = [event.event_type for event in await self.run.events()]
            return EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED in kinds
        client = self.env.client
        update = UpdateRef(
            workflow_execution=WorkflowExecution(workflow_id=self.run.id), update_id=self.update_id
        )
        request = PollWorkflowExecutionUpdateRequest(namespace=client.namespace, update_ref=update)
        try:
            await client.workflow_service.poll_workflow_execution_update(request)
        except RPCError as error:
            only_closed(error)
            return False
        return True

    async def fired(self) -> int:
        """Return how many deadlines have passed for the run."""
        return [event.event_type for event in await self.run.events()].count(FIRED)


Begin = Callable[[World], Awaitable[Waiting]]


@pytest.fixture
def begin(skipping: WorkflowEnvironment, way: str) -> Begin:
    """Return what starts a run on a clock that stands still."""

    async def started(world: World) -> Waiting:
        with skipping.with_time_skipping_disabled():
            run = await world.start(*SCRIPT, mode="approve")
        return Waiting(run, skipping, await run.waiting(), way, uuid.uuid4().hex)

    return started


async def _see_counted(world: World, waiting: Waiting, passed: int) -> None:
    """See that the approval was carried out after so many deadlines."""
    assert Status.COMPLETED is (await waiting.run.response()).status
    assert ["bug"] == await world.written(waiting.run)
    assert (passed, []) == (await waiting.fired(), await waiting.run.refusal_codes())


async def _see_expired(world: World, waiting: Waiting, *refused: str) -> None:
    """See that the run went to a person with nothing written."""
    assert EXPIRED == outcome(await waiting.run.response())
    assert [(OPERATION, 3, "expired")] == await waiting.run.operation_states()
    assert ([], [*refused]) == (
        await world.written(waiting.run),
        await waiting.run.refusal_codes(),
    )


@each_deadline
@each_way
async def test_an_approval_a_second_before_a_deadline_counts(
    skipping_world: World, begin: Begin, deadline: str, way: str
) -> None:
    """Before the reminder, before the escalation and before the end it is equally good."""
    for _ in range(TRIES):
        waiting = await begin(skipping_world)
        await waiting.move_to(waiting.moment(deadline) - SECOND)
        told = await waiting.approve()
        if await waiting.now() < waiting.moment(deadline):
            assert told in {ACCEPTED, ""}
            await _see_counted(skipping_world, waiting, ORDER.index(deadline))
            return
        # This machine took longer than the second that was left: it shows nothing.
    pytest.fail("no approval arrived within a second")


@each_deadline
@each_way
async def test_an_approval_in_one_task_with_a_deadline(
    skipping_world: World, begin: Begin, deadline: str, way: str
) -> None:
    """With a reminder or an escalation it counts; with the expiry it is expired, in any order."""
    async with altered_world(skipping_world) as first:
        waiting = await begin(first)
        await waiting.move_to(waiting.moment(deadline) - HOUR)
    await waiting.move_to(waiting.moment(deadline) + SECOND)
    approval = asyncio.create_task(waiting.approve())
    assert await eventually(waiting.arrived)
    async with altered_world(skipping_world, queue=first.queue):
        told = await approval
        if deadline == "expiry":
            # The server keeps an update in memory alone; one that it lost is sent again, too late.
            assert told in {"expired", "", CLOSED}
            await _see_expired(skipping_world, waiting, *["expired"] * (way == "signal"))
        else:
            assert told in {ACCEPTED, ""}
            await _see_counted(skipping_world, waiting, ORDER.index(deadline) + 1)


@each_deadline
@each_way
async def test_an_approval_a_second_after_a_deadline(
    skipping_world: World, begin: Begin, deadline: str, way: str
) -> None:
    """After a reminder or an escalation it counts; after the expiry the run has ended."""
    waiting = await begin(skipping_world)
    await waiting.move_to(waiting.moment(deadline) + SECOND)
    if deadline == "expiry":
        await waiting.run.response()
        assert CLOSED == await waiting.approve()
        await _see_expired(skipping_world, waiting)
    else:
        assert await waiting.approve() in {ACCEPTED, ""}
        await _see_counted(skipping_world, waiting, ORDER.index(deadline) + 1)
