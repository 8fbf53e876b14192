"""A worker is frozen in the middle of a write, another one finishes it, and the frozen one wakes.

Nothing can stop a process that wakes up right before its first byte, so the ledger has to have
taken its right to send, and the tracker must not do twice what is done.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.crash.conftest import OpenCell
from tests.crash.nursery import COMMITTED, SENT
from tests.crash.paused_worker import FREEZE
from tests.crash.scene import Cell, Record
from triage.settings import Role

PLACES = ("after reserve", "after dispatch", "before send", "after send")


async def _frozen(cell: Cell, place: str) -> tuple[Record, Record]:
    """Return what the run left behind, before and after the frozen worker woke up.

    Waking, it goes on with its attempt, and with the next one if the server gave it that, too.
    """
    decider = await cell.worker(roles=(Role.DECIDE,))
    first = await cell.worker(place, FREEZE, roles=(Role.WRITE,))
    handle = await cell.start()
    await cell.approve(handle)
    await first.frozen()
    second = await cell.worker(roles=(Role.WRITE,))
    before = await cell.record(handle)
    await first.thaw()
    assert 0 == await first.stop()
    after = await cell.record(handle)
    await second.kill()
    await decider.kill()
    return before, after


async def _play(open_cell: OpenCell, place: str) -> tuple[Record, Record]:
    return await _frozen(open_cell(f"frozen {place}"), place)


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_frozen_worker_writes_nothing_when_it_wakes(
    open_cell: OpenCell, undisturbed: Record, subtests: pytest.Subtests
) -> None:
    """Its labels were put on once, by whoever finished the run, and its waking changes nothing."""
    played = await asyncio.gather(*(_play(open_cell, place) for place in PLACES))
    for place, (before, after) in zip(PLACES, played, strict=True):
        with subtests.test(place):
            assert undisturbed == before
            # A call that had begun may still go out, but it cannot put a label on.
            assert before == replace(after, sends=before.sends)
            assert 1 == after.sends.count(COMMITTED)
            assert after.sends.count(SENT) <= 1 + (place == "before send")
