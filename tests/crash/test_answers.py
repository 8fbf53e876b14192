"""Whole runs whose write is carried out, and whose tracker says so badly, late or not at all."""

from __future__ import annotations

import asyncio

import pytest

from tests.crash.arena import Arena
from tests.crash.records import Record, differences
from tests.crash.scenarios import Scenario
from tests.crash.scene import LEASE_SECONDS
from tests.fakes.faults import Reply, dropped_after, fails_after, late

LATE_SECONDS = LEASE_SECONDS / 2
"""Long after the answer was given up, and well inside the quiet period."""

SCENARIOS = (
    Scenario(name="a 502 after the commit", faults=(fails_after(502),)),
    Scenario(name="a connection closed after the commit", faults=(dropped_after(),)),
    Scenario(name="half a body after the commit", faults=(dropped_after(Reply.HALF),)),
    Scenario(name="a commit that comes late", faults=(late(int(LATE_SECONDS * 1_000)),)),
)


async def _play(arena: Arena, scenario: Scenario) -> Record:
    async with arena.ground.cell(scenario.name, scenario) as cell:
        worker = await cell.worker()
        handle = await cell.start()
        await cell.approve(handle)
        record = await cell.record(handle)
        await worker.kill()
        return record


@pytest.mark.slow
async def test_a_write_whose_answer_is_bad_is_not_sent_again(
    arena: Arena, undisturbed: Record, subtests: pytest.Subtests
) -> None:
    """Done all the same: the run ends applied, after one request, as if it had been answered."""
    played = await asyncio.gather(*(_play(arena, scenario) for scenario in SCENARIOS))
    for scenario, record in zip(SCENARIOS, played, strict=True):
        with subtests.test(scenario.name):
            assert [] == differences(undisturbed, record)
