"""A worker wakes up when its write is long done, and when a person has undone it since.

Nothing can stop a process that wakes up between its last look and its first byte: the tracker has
no conditional write. So what such a request can still do is written down here, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.crash.arena import Arena
from tests.crash.places import Action, Place
from tests.crash.plays import FIRST_BYTE
from tests.crash.records import Record, differences
from tests.crash.scenarios import REPOSITORY
from tests.crash.scene import Cell
from tests.fakes.commit_log import Action as Change
from tests.fakes.commit_log import Entry
from tests.workflow.decisions import ISSUE
from triage.faults import Point
from triage.settings import Role

REMOVED = "bug"


async def _woken_after_a_removal(arena: Arena, place: Place) -> list[tuple[str, str | None]]:
    """Freeze a writer, let another one end the run and a person take a label off, and thaw it.

    Returns:
        What happened to the issue's labels.
    """
    async with arena.ground.cell(f"removed {place}") as cell:
        decider = await cell.worker(roles=(Role.DECIDE,))
        frozen = await cell.worker(place, Action.FREEZE, (Role.WRITE,))
        handle = await cell.start()
        await cell.approve(handle)
        await cell.freezes(frozen, handle)
        second = await cell.worker(roles=(Role.WRITE,))
        await cell.record(handle)
        assert cell.tracker
        await cell.tracker.remove_label(REPOSITORY, ISSUE, REMOVED)
        await frozen.thaw()
        assert 0 == await frozen.stop(), cell.log()
        await asyncio.gather(second.kill(), decider.kill())
        return _labels(await cell.tracker.log(), cell)


def _labels(log: Sequence[Entry], cell: Cell) -> list[tuple[str, str | None]]:
    assert cell.tracker
    changes = {Change.LABELED, Change.REPEATED, Change.UNLABELED}
    return [(entry.action.value, entry.label) for entry in log if entry.action in changes]


async def _overtaken(arena: Arena) -> tuple[int, Record]:
    """Freeze a writer that may send, and the one that took over from it, and thaw them in turn.

    Returns:
        How many requests came in until the first had gone on, and the end.
    """
    dispatched = Place(Point.LEDGER_AFTER, "dispatch")
    async with arena.ground.cell("overtaken") as cell:
        decider = await cell.worker(roles=(Role.DECIDE,))
        first = await cell.worker(dispatched, Action.FREEZE, (Role.WRITE,))
        handle = await cell.start()
        await cell.approve(handle)
        await cell.freezes(first, handle)
        second = await cell.worker(dispatched, Action.FREEZE, (Role.WRITE,))
        await cell.freezes(second, handle)
        await first.thaw()
        late = await cell.posts()
        await first.stop()
        await second.thaw()
        record = await cell.record(handle)
        await asyncio.gather(second.kill(), decider.kill())
        return late, record


@pytest.mark.slow
async def test_a_worker_that_wakes_up_late(
    arena: Arena, undisturbed: Record, subtests: pytest.Subtests
) -> None:
    """It sends nothing that was taken over from it, and puts back nothing that a person took off.

    Except by a request that had passed its last look: that goes out as it was built, and puts the
    label back. The tracker's log shows it under the operation's key; nothing prevents it.
    """
    (late, record), before, after = await asyncio.gather(
        _overtaken(arena),
        _woken_after_a_removal(arena, Place(Point.WRITE_BEFORE_SEND)),
        _woken_after_a_removal(arena, FIRST_BYTE),
    )
    once = [("labeled", "bug"), ("labeled", "component:api"), ("unlabeled", REMOVED)]
    with subtests.test("overtaken"):
        assert 0 == late
        assert [] == differences(undisturbed, record)
    with subtests.test("removed before its last look"):
        assert once == before
    with subtests.test("removed after its last look"):
        assert [*once, ("labeled", REMOVED), ("repeated", "component:api")] == after
