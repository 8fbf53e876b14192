"""Several people who sign at the same moment: each approval counts, and the last one decides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import JsonValue
from temporalio import activity
from temporalio.exceptions import ApplicationError

from tests.workflow.runs import Run
from tests.workflow.test_signed_approvals import opened_signing
from tests.workflow.world import World
from triage.contracts.response import Status
from triage.faults import Point, arm
from triage.story.parts import Kind
from triage.story.telling import tell

Sent = dict[str, JsonValue]
Send = Callable[[Run, Sent], Awaitable[None]]


async def _by_update(run: Run, signed: Sent) -> None:
    assert (await run.update({**signed, "verdict": "approve"})).accepted


async def _by_signal(run: Run, signed: Sent) -> None:
    await run.signal("approve", signed)


@pytest.mark.parametrize(
    ("one", "other"),
    [(_by_update, _by_update), (_by_signal, _by_update), (_by_signal, _by_signal)],
    ids=["two updates", "a signal and an update", "two signals"],
)
async def test_two_who_sign_at_the_same_moment_are_two(
    world: World, tmp_path: Path, one: Send, other: Send
) -> None:
    """While both are verified neither is the last; the later one is recorded as the decision."""
    async with opened_signing(world, tmp_path, approvals_required=2) as signed:
        run, pending = await signed.waiting()
        first, second = signed.signed(run, pending), signed.other_person().signed(run, pending)
        await asyncio.gather(one(run, first), other(run, second))
        response = await run.response()
        assert (Status.COMPLETED, None) == (response.status, response.failure)
        assert ["bug"] == await signed.world.written(run)
        assert [] == await run.refusal_codes()


@contextmanager
def _first_one_held() -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Let the verification that begins first fail until it is freed; say when it has begun."""
    held, begun, free = list[str](), asyncio.Event(), asyncio.Event()

    def hold(point: Point, _: str) -> None:
        if point is not Point.VERIFY_BEFORE_RECORD or free.is_set():
            return
        held.append(activity.info().activity_id)
        begun.set()
        if held[-1] == held[0]:
            raise ApplicationError("not yet")

    disarm = arm(hold)
    try:
        yield begun, free
    finally:
        disarm()


async def test_the_story_names_who_decided(world: World, tmp_path: Path) -> None:
    """Whose signature was verified last has decided, also if their answer was asked for first."""
    async with opened_signing(world, tmp_path, approvals_required=2) as signed:
        run, pending = await signed.waiting()
        late, first = signed.signed(run, pending), signed.other_person().signed(run, pending)
        with _first_one_held() as (begun, free):
            answered = asyncio.create_task(_by_update(run, late))
            await begun.wait()
            await _by_signal(run, first)
            await run.reaches(lambda state: bool(state.pending and state.pending.approved_by))
            free.set()
            await answered
        await run.response()
        story = tell(list((await run.handle.fetch_history()).events))
    beats = {told.facts["approver"]: told for told in story.beats if "decides" in told.facts}
    by_first, by_late = beats[first["approver"]], beats[late["approver"]]
    assert (False, True) == (by_first.facts["decides"], by_late.facts["decides"])
    assert "it counts, as approval 1 of 2" in by_first.text
    assert "it counts, as approval 2 of 2, which decides" in by_late.text
    [over] = [told for told in story.beats if told.kind is Kind.WAITED]
    assert over.text.endswith(f"approved by {first['approver']}, {late['approver']}")
