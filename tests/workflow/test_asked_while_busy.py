"""What somebody asks while a local activity is under way changes nothing of the run."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from temporalio import activity
from temporalio.service import RPCError

import worker
from activities.labels import PreviewActivities
from activities.run_context import RunContextActivities
from tests.workflow.decisions import a_request, final, label, lookup
from tests.workflow.runs import Run, outcome
from tests.workflow.world import World, altered_world
from triage.cli.clients import BUSY, BUSY_HINT, NoWorkerError, ask_run, find_run
from triage.contracts.names import (
    ACTIVITY_PIN_RUN_CONTEXT,
    ACTIVITY_PREVIEW_OPERATION,
    QUERY_STATE,
)
from triage.contracts.payloads import PinRequest, Preview, PreviewRequest, RunContext
from triage.contracts.response import Status
from triage.replay import replay_failure

SCRIPT = [lookup(), *[label()] * 4, final("mutation-receipt", labels=("bug",))]
TIMES_UNTIL_A_TIMER = 4
"""How often a local activity fails within its workflow task: 0.2, 0.4 and 0.8 s apart."""
STORM_RUNS = 250
"""Of so many 11 could not be replayed, when such queries were answered at once."""


async def _replays(run: Run) -> str | None:
    return await replay_failure(await run.handle.fetch_history(), worker.WORKFLOWS)


class SlowPin:
    """The local activity that begins a run, and ends when it may."""

    def __init__(self, world: World) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self._real = RunContextActivities(world.services)

    @activity.defn(name=ACTIVITY_PIN_RUN_CONTEXT)
    async def pin(self, request: PinRequest) -> RunContext:
        """Pin what the run is held to, later."""
        self.begun.set()
        await self.may_end.wait()
        return await self._real.pin(request)


async def test_what_is_asked_during_a_local_activity_is_answered_after_it(world: World) -> None:
    """Edited, asked and edited again within one, a run goes on, answers, and replays."""
    slow = SlowPin(world)
    async with altered_world(world) as first:
        run = await first.start(*SCRIPT, mode="approve", max_steps=9)
        await run.waiting_at(6)
    # With nobody at work, the question goes along with the workflow task that the edit makes.
    await run.signal("edit", a_request(title="Edited once"))
    asked = asyncio.create_task(run.state())
    await run.handle.describe()
    async with altered_world(world, pin=slow.pin, queue=first.queue):
        await slow.begun.wait()
        await run.signal("edit", a_request(title="Edited twice"))
        slow.may_end.set()
        assert (await asked).status in {Status.DECIDING, Status.TOOL_PENDING}
        await run.reaches(lambda state: state.pending is not None and state.version > 6)
        assert await _replays(run) is None
        await run.review("reject")
        assert Status.REVIEW_REQUIRED is (await run.response()).status
    assert [] == await run.task_failures()
    assert await _replays(run) is None


async def test_a_run_answers_while_a_local_activity_pauses(world: World) -> None:
    """What cannot be done for longer than a moment is waited for by a timer, and keeps no query."""
    tried: list[int] = []
    is_mended = asyncio.Event()
    real = RunContextActivities(world.services)

    @activity.defn(name=ACTIVITY_PIN_RUN_CONTEXT)
    async def broken_pin(request: PinRequest) -> RunContext:
        tried.append(activity.info().attempt)
        if not is_mended.is_set():
            raise RuntimeError
        return await real.pin(request)

    async with altered_world(world, pin=broken_pin) as broken:
        run = await broken.start(lookup(), final("owners-api"))
        # Answered at last though the activity has not ended.
        assert Status.RECEIVED is (await run.state()).status
        assert TIMES_UNTIL_A_TIMER <= len(tried)
        is_mended.set()
        assert (Status.COMPLETED, None) == outcome(await run.response())
    assert [*range(1, len(tried) + 1)] == tried
    assert await _replays(run) is None


async def test_a_command_tells_a_busy_run_from_one_that_nobody_carries(world: World) -> None:
    """Whoever asks in vain while a local activity is under way is told of no missing worker."""
    slow = SlowPin(world)
    async with altered_world(world, pin=slow.pin) as busy:
        run = await busy.start(lookup(), final("owners-api"))
        await slow.begun.wait()
        found = await find_run(world.client, run.id)
        with pytest.raises(NoWorkerError, match=BUSY) as told:
            await ask_run(world.client, found, QUERY_STATE, timedelta(seconds=1))
        assert BUSY_HINT == told.value.hint
        slow.may_end.set()
        assert (Status.COMPLETED, None) == outcome(await run.response())


async def test_a_replay_shows_the_times_that_people_were_shown(world: World) -> None:
    """When a write was proposed and until when it may be approved is what the history says."""
    async with altered_world(world) as first:
        run = await first.start(*SCRIPT, mode="approve", approval_window_seconds=3_600)
        shown = await run.waiting_at(6)
    async with altered_world(world, queue=first.queue):
        assert shown == await run.waiting()
        began, ends = map(datetime.fromisoformat, (shown.proposed_at, shown.expires_at))
        assert timedelta(hours=1) == ends - began
        await run.review("reject")
        await run.response()


async def test_a_wait_begins_when_a_person_can_see_it(world: World) -> None:
    """What a preview was late by is not taken off the time that people have."""
    tried: list[datetime] = []
    real = PreviewActivities(world.services)

    @activity.defn(name=ACTIVITY_PREVIEW_OPERATION)
    async def broken_preview(request: PreviewRequest) -> Preview:
        tried.append(datetime.now(UTC))
        if len(tried) <= TIMES_UNTIL_A_TIMER:
            raise RuntimeError
        return await real.preview(request)

    async with altered_world(world, preview=broken_preview) as broken:
        run = await broken.start(*SCRIPT, mode="approve", approval_window_seconds=3_600)
        shown = await run.waiting_at(6)
    assert tried[-1] <= datetime.fromisoformat(shown.proposed_at)
    async with altered_world(world, queue=broken.queue):
        assert shown == await run.waiting()
        await run.review("reject")
        await run.response()
    assert await _replays(run) is None


@pytest.mark.long
async def test_whatever_is_asked_and_edited_meanwhile_runs_replay(world: World) -> None:
    """Runs that are looked at all the time, and edited at any time, replay to the end."""
    chance = random.Random(7)  # noqa: S311 - only moments are chosen by it
    runs: list[Run] = []
    async with altered_world(world) as stormy:
        for _ in range(STORM_RUNS // 5):
            runs += await asyncio.gather(*(_storm(stormy, chance) for _ in range(5)))
        assert [None] * STORM_RUNS == [await _replays(run) for run in runs]
        for run in runs:
            assert [] == await run.task_failures()
            await run.handle.terminate()


async def _storm(world: World, chance: random.Random) -> Run:
    run = await world.start(*SCRIPT, mode="approve", max_steps=9)

    async def ask() -> None:
        with suppress(RPCError):
            for _ in range(60):
                await run.state()
                await asyncio.sleep(chance.random() / 100)

    async def edit() -> None:
        for number in range(3):
            await asyncio.sleep(chance.random() / 4)
            await run.signal("edit", a_request(title=f"Edited {number}"))

    await asyncio.gather(ask(), ask(), edit())
    return run
