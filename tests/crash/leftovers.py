"""A run is terminated after its write went out, and the worker that looks after it is disturbed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

from temporalio.client import WorkflowHandle

from tests.crash.nursery import Process
from tests.crash.places import Action, Place
from tests.crash.plays import Seen, holds_the_database, see_that_nobody_can_write
from tests.crash.records import Traces
from tests.crash.scene import LOOK_EVERY_SECONDS, SECONDS, Cell
from triage.faults import Point
from triage.settings import Role

SWEEP_SECONDS: Final = 0.5
SWEEPER_LEASE_SECONDS: Final = 4.0
SENT: Final = Place(Point.WRITE_AFTER_SEND)


async def settled_undisturbed(cell: Cell) -> Traces:
    """Let one sweeper settle the write."""
    cell, handle = await _left(cell)
    sweeper = await _sweeper(cell)
    traces = await _settled(cell, handle)
    await sweeper.kill()
    return traces


async def play_leftover(cell: Cell, place: Place, action: Action) -> Seen:
    """Disturb the first sweeper, and let the second settle the write."""
    cell, handle = await _left(cell)
    first = await _sweeper(cell, place, action)
    if action is Action.KILL:
        await _death(cell, first)
        second = await _sweeper(cell)
        before = after = await _settled(cell, handle)
    elif holds_the_database(cell, place):
        await first.frozen()
        await see_that_nobody_can_write(cell)
        await first.thaw()
        second = first
        before = after = await _settled(cell, handle)
    else:
        await first.frozen()
        second = await _sweeper(cell)
        before = await _settled(cell, handle)
        await first.thaw()
        assert 0 == await first.stop(), cell.log()
        after = await _settled(cell, handle)
    await second.kill()
    return Seen(first=before, second=after)


async def _left(cell: Cell) -> tuple[Cell, WorkflowHandle[Any, Any]]:
    """Terminate a run whose worker died between the tracker's answer and seeing the labels."""
    changes = {"lease_seconds": SWEEPER_LEASE_SECONDS, "sweep_period_seconds": SWEEP_SECONDS}
    cell = replace(cell, settings=cell.settings.model_copy(update=changes))
    first = await cell.worker(SENT)
    handle = await cell.start()
    approval = asyncio.create_task(cell.approve(handle))
    await cell.dies(first, handle)
    await approval
    await handle.terminate("for a test")
    return cell, handle


async def _sweeper(cell: Cell, place: Place | None = None, action: Action = Action.KILL) -> Process:
    return await cell.worker(place, action, (Role.WRITE,))


async def _death(cell: Cell, process: Process) -> None:
    async with asyncio.timeout(SECONDS):
        assert -9 == await process.ended(), cell.log()


async def _settled(cell: Cell, handle: WorkflowHandle[Any, Any]) -> Traces:
    """Return what is left once the ledger says that the write is done."""
    async with asyncio.timeout(SECONDS):
        while True:
            traces = await cell.witness(handle.id).traces()
            if all(done for *_, done in traces.operations):
                return traces
            await asyncio.sleep(LOOK_EVERY_SECONDS)
