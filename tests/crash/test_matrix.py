"""A worker is killed between any two steps of a run, and another one finishes the run.

The cells run side by side, since most of their time is waiting: an activity that died without a
word is tried again after its start-to-close timeout (a write after its heartbeat timeout), and a
workflow task after ten seconds.
"""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from tests.crash.conftest import OpenCell
from tests.crash.scene import Cell, Record

WAITING: Final = "waiting for a person"
WRITE_PLACES: Final = (
    "after reserve",
    "after dispatch",
    "before send",
    "after send",
    "after settle",
)
PLACES: Final = (
    "before pin_run_context 1",
    "after pin_run_context 1",
    "command decide 1",
    "before decide 1",
    "after decide 1",
    "command lookup_component_owner 1",
    "before lookup_component_owner 1",
    "after lookup_component_owner 1",
    "command decide 2",
    "before decide 2",
    "after decide 2",
    "before preview_operation 1",
    "after preview_operation 1",
    WAITING,
    "command apply_labels 1",
    "before apply_labels 1",
    *WRITE_PLACES,
    "after apply_labels 1",
)


async def _killed_while_waiting(cell: Cell) -> Record:
    """Nobody is there when the person decides; the next worker hears of it."""
    first = await cell.worker()
    handle = await cell.start()
    await cell.waiting(handle)
    await first.kill()
    await cell.approve(handle)
    second = await cell.worker()
    record = await cell.record(handle)
    await second.kill()
    return record


async def _killed(cell: Cell, place: str) -> Record:
    """The first worker kills itself at the place; the second is a production worker."""
    first = await cell.worker(place)
    handle = await cell.start()
    approval = asyncio.create_task(cell.approve(handle))
    await cell.dies(first, handle)
    second = await cell.worker()
    record = await cell.record(handle)
    await approval
    await second.kill()
    return record


async def _play(cell: Cell, place: str) -> Record:
    return await (_killed_while_waiting(cell) if place == WAITING else _killed(cell, place))


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_killed_worker_changes_nothing(
    open_cell: OpenCell, undisturbed: Record, subtests: pytest.Subtests
) -> None:
    """Wherever a worker is killed, the run takes the same steps, once, and writes once."""
    cells = map(open_cell, PLACES)
    played = await asyncio.gather(*map(_play, cells, PLACES), return_exceptions=True)
    for place, record in zip(PLACES, played, strict=True):
        with subtests.test(place):
            assert undisturbed == record


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(180)
async def test_a_write_is_as_safe_on_postgresql(
    open_postgres_cell: OpenCell, undisturbed: Record, subtests: pytest.Subtests
) -> None:
    """The ledger's moves mean the same on both databases, wherever they are cut."""
    cells = [open_postgres_cell(f"postgresql {place}") for place in WRITE_PLACES]
    played = await asyncio.gather(*map(_play, cells, WRITE_PLACES), return_exceptions=True)
    for place, record in zip(WRITE_PLACES, played, strict=True):
        with subtests.test(place):
            assert undisturbed == record


async def test_an_undisturbed_run_is_what_it_should_be(undisturbed: Record) -> None:
    """The run that all others are compared with reads once, asks twice and writes once."""
    assert ("lookup_component_owner", "apply_labels") == undisturbed.response.tool_sequence
    assert ["call_tool", "final"] == [decision.kind for decision in undisturbed.decisions]
    assert ["lookup_component_owner", "apply_labels"] == [row[2] for row in undisturbed.evidence]
    assert [("op-6", 6, ("bug", "component:api"), True)] == undisturbed.operations
    assert [("added", "bug"), ("added", "component:api")] == undisturbed.events
    assert ["sent", "committed"] == undisturbed.sends
    assert [] == undisturbed.findings
