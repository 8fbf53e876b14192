"""Waits, deadlines and retries that span hours and days, on a server that skips time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import JsonValue
from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.testing import WorkflowEnvironment

from activities.decide import DecideActivities
from activities.reads import (
    READ_HANDLERS,
    RawRead,
    TransientReadError,
    lookup_component_owner,
)
from tests.workflow.decisions import OPERATION, a_request, final, label, lookup
from tests.workflow.runs import SECONDS, Run, envelope, eventually, outcome, refusal_of
from tests.workflow.world import World, altered_world
from triage.contracts.names import ACTIVITY_DECIDE
from triage.contracts.payloads import DecideRequest, DecideResult
from triage.contracts.response import Status
from triage.policy.rules import Rules
from triage.policy.tools import BUILTIN_TOOLS, RetryRule, ToolRegistry

EXPIRED = (Status.REVIEW_REQUIRED, "approval_required")
WRITE = [label(), final("mutation-receipt", labels=("bug",))]
SECOND = timedelta(seconds=1)


async def _took(run: Run) -> timedelta:
    """How long the run took by its own clock."""
    events = await run.events()
    return events[-1].event_time.ToDatetime() - events[0].event_time.ToDatetime()


async def test_a_wait_of_three_days_expires(skipping_world: World) -> None:
    """Nobody decides for 72 hours: the run ends in review with the proposal whole."""
    run = await skipping_world.start(lookup(), final("owners-api"), mode="approve")
    response = await run.response()
    assert EXPIRED == outcome(response)
    assert ("bug", ("bug", "component:api"), "backend-team", ("owners-api",)) == (
        response.route,
        response.labels,
        response.owner,
        response.evidence_ids,
    )
    assert [("op-6", 6, "expired")] == await run.operation_states()
    assert [("op-6", False, False, "approval_required")] == await run.mutation_facts()
    assert [] == await skipping_world.written(run)
    assert timedelta(hours=72) <= await _took(run) < timedelta(hours=72, minutes=5)


@dataclass(frozen=True)
class Waiting:
    """A run that waits, on a clock that stands until it is moved on."""

    run: Run
    env: WorkflowEnvironment
    expires_at: datetime

    async def move_to(self, before: timedelta) -> None:
        """Move the run's clock to so long before its deadline."""
        now = await self.env.get_current_time(self.run.handle)
        async with asyncio.timeout(SECONDS):
            await self.env.fast_forward(self.run.handle, self.expires_at - before - now)


@pytest.fixture
async def waiting(skipping: WorkflowEnvironment, skipping_world: World) -> Waiting:
    """A run that waits for 72 hours."""
    return await _waiting(skipping, skipping_world)


async def _waiting(
    skipping: WorkflowEnvironment,
    skipping_world: World,
    **options: Any,  # noqa: ANN401 - any options at all
) -> Waiting:
    with skipping.with_time_skipping_disabled():
        run = await skipping_world.start(*WRITE, mode="approve", **options)
    pending = await run.waiting()
    return Waiting(run, skipping, datetime.fromisoformat(pending.expires_at))


async def test_the_wait_is_not_charged_to_the_budget_of_time(
    skipping: WorkflowEnvironment, skipping_world: World
) -> None:
    """What a person takes is not what the run takes: three days do not spend a minute."""
    late = await _waiting(skipping, skipping_world, budget={"seconds": 60})
    await late.move_to(timedelta(hours=1))
    assert (await late.run.review("approve")).accepted
    assert Status.COMPLETED is (await late.run.response()).status
    assert (await late.run.state()).spent.seconds < 60


async def test_a_deadline_is_absolute_and_three_days_away(waiting: Waiting) -> None:
    """The pending operation says when it was proposed and when it expires, in UTC."""
    pending = await waiting.run.waiting()
    proposed_at = datetime.fromisoformat(pending.proposed_at)
    assert timedelta(hours=72) == waiting.expires_at - proposed_at
    assert timedelta(0) == waiting.expires_at.utcoffset()
    await waiting.run.handle.terminate()


async def test_an_approval_a_second_before_the_deadline_counts(
    skipping: WorkflowEnvironment, skipping_world: World
) -> None:
    """An approval that comes in the last second is as good as one of the first."""
    for _ in range(5):
        late = await _waiting(skipping, skipping_world)
        await late.move_to(SECOND)
        code = await refusal_of(late.run.review("approve"))
        if await skipping.get_current_time(late.run.handle) < late.expires_at:
            assert code is None
            assert Status.COMPLETED is (await late.run.response()).status
            return
        # This machine took longer than the second that was left: it shows nothing.
    pytest.fail("no approval arrived within a second")


async def test_refused_messages_do_not_extend_the_deadline(waiting: Waiting) -> None:
    """However much is refused meanwhile, the deadline stays where it was."""
    for hours in (60, 40, 20):
        await waiting.move_to(timedelta(hours=hours))
        await waiting.run.signal("approve", {"nonsense": hours})
        await waiting.run.reaches(lambda state: state.refusals_total > 0)
        assert waiting.expires_at.isoformat() == (await waiting.run.waiting()).expires_at
    await waiting.env.fast_forward(waiting.run.handle, timedelta(hours=21))
    assert EXPIRED == outcome(await waiting.run.response())
    assert 3 == (await waiting.run.state()).refusals_total


async def test_an_approval_that_is_looked_at_too_late_does_not_count(
    skipping: WorkflowEnvironment, skipping_world: World
) -> None:
    """In one task with the expiry an approval is expired, however the two were ordered."""
    async with altered_world(skipping_world) as first:
        with skipping.with_time_skipping_disabled():
            run = await first.start(*WRITE, approval_window_seconds=3_600)
        pending = await run.waiting()
    late = Waiting(run, skipping, datetime.fromisoformat(pending.expires_at))
    # Nobody looks at what arrives in this last second.
    await late.move_to(SECOND)
    await run.signal("approve", envelope(pending))

    async def is_over() -> bool:
        return await skipping.get_current_time(run.handle) > late.expires_at

    assert await eventually(is_over)
    async with altered_world(skipping_world, queue=first.queue):
        assert EXPIRED == outcome(await run.response())
        assert [(OPERATION, 3, "expired")] == await run.operation_states()
        assert ["expired"] == await run.refusal_codes()
        assert [] == await skipping_world.written(run)


async def test_edits_open_a_window_of_their_own(
    skipping: WorkflowEnvironment, skipping_world: World
) -> None:
    """What is proposed after an edit may be decided on for 72 hours from then."""
    with skipping.with_time_skipping_disabled():
        run = await skipping_world.start(label(), label(), mode="approve")
    first = await run.waiting()
    edited = Waiting(run, skipping, datetime.fromisoformat(first.expires_at))
    await edited.move_to(timedelta(hours=1))
    await run.signal("edit", a_request(title="Edited"))
    second = await run.waiting_at(6)
    gained = datetime.fromisoformat(second.expires_at) - edited.expires_at
    assert timedelta(hours=70) < gained < timedelta(hours=72)
    await skipping.fast_forward(run.handle)
    assert EXPIRED == outcome(await run.response())
    assert timedelta(hours=142) < await _took(run) < timedelta(hours=144)


async def test_the_pauses_between_tries_of_a_tool_cost_nothing(skipping_world: World) -> None:
    """A tool that fails twice, with minutes between its tries, is waited for in seconds."""
    tries = 0

    async def recovers(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise TransientReadError
        return await lookup_component_owner(arguments, rules)

    rule = RetryRule(max_attempts=3, backoff_seconds=120, max_elapsed_seconds=600)
    tools = [spec if spec.side_effect else replace(spec, retry=rule) for spec in BUILTIN_TOOLS]
    services = replace(skipping_world.services, tools=ToolRegistry(*tools))
    handlers = {**READ_HANDLERS, "lookup_component_owner": recovers}
    async with altered_world(skipping_world, services=services, handlers=handlers) as patient:
        run = await patient.start(lookup(), final("owners-api"))
        assert Status.COMPLETED is (await run.response()).status
        assert 3 == tries
        assert timedelta(minutes=3) < await _took(run) < timedelta(minutes=7)


async def test_a_worker_that_fails_for_minutes_is_waited_for(skipping_world: World) -> None:
    """Faults of the platform around a decision are retried with growing pauses and cost no step."""
    ask = DecideActivities(skipping_world.services).decide
    tries = 0

    @activity.defn(name=ACTIVITY_DECIDE)
    async def unlucky(request: DecideRequest) -> DecideResult:
        nonlocal tries
        tries += 1
        if tries < 10:
            raise RuntimeError("the database is away")
        return await ask(request)

    async with altered_world(skipping_world, decide=unlucky) as opened:
        run = await opened.start(lookup(), final("owners-api"))
        response = await run.response()
        assert (Status.COMPLETED, 2, 0) == (response.status, response.steps, response.retries)
        assert timedelta(minutes=1) < await _took(run) < timedelta(minutes=10)
        assert "database" not in (await run.handle.fetch_history()).to_json()


async def test_a_platform_that_stays_away_fails_the_execution(skipping_world: World) -> None:
    """Only when the bounded retries of the platform are used up does the execution itself fail."""

    @activity.defn(name=ACTIVITY_DECIDE)
    async def broken(request: DecideRequest) -> DecideResult:
        raise RuntimeError("the database is away")

    async with altered_world(skipping_world, decide=broken) as opened:
        run = await opened.start(lookup())
        with pytest.raises(WorkflowFailureError):
            await run.response()
        assert await _took(run) <= timedelta(minutes=11)


async def test_a_wait_is_reminded_and_escalated_before_it_expires(
    skipping_world: World,
) -> None:
    """Durable timers fire at 24, 48 and 72 hours, and messages in between move none of them."""
    run = await skipping_world.start(lookup(), final("owners-api"), mode="approve")
    assert EXPIRED == outcome(await run.response())
    fired = [e for e in await run.events() if e.HasField("timer_fired_event_attributes")]
    began = (await run.events())[0].event_time.ToDatetime()
    hours = [round((e.event_time.ToDatetime() - began) / timedelta(hours=1)) for e in fired]
    assert [24, 48, 72] == hours
