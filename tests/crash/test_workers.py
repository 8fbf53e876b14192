"""Real worker processes, as `python -m worker` starts them, share one queue and one database."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from typing import Final

import pytest

from tests.crash.records import Record
from tests.crash.scene import Cell, Ground
from triage.embedded import WorkerProcess
from triage.settings import Role

RUNS: Final = 6
ARRANGEMENTS: Final = {
    "two equal workers": (tuple(Role), tuple(Role)),
    "one that decides and one that writes": ((Role.DECIDE,), (Role.WRITE,)),
}


async def _play(cell: Cell, issue: str) -> Record:
    handle = await cell.start(issue)
    await cell.approve(handle)
    return await cell.record(handle)


def _see_that_it_is_whole(record: Record) -> None:
    assert [("added", "bug"), ("added", "component:api")] == record.commits
    assert [("op-6", 6, ("bug", "component:api"), True)] == record.operations
    assert (1, 1) == (record.receipts, record.settled)
    assert [] == record.findings


@pytest.mark.slow
@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
async def test_workers_share_a_database(ground: Ground, arrangement: str) -> None:
    """Two workers carry many runs at once, and each write still happens once."""
    cell = ground.local_cell(arrangement)
    async with AsyncExitStack() as running:
        for part in ARRANGEMENTS[arrangement]:
            settings = cell.settings.model_copy(update={"roles": part})
            await running.enter_async_context(WorkerProcess(settings, cell.connection))
        issues = [f"ISSUE-{number}" for number in range(RUNS)]
        records = await asyncio.gather(*(_play(cell, issue) for issue in issues))
    for record in records:
        _see_that_it_is_whole(record)
    assert issues == [record.response.request_id for record in records]


@pytest.mark.slow
async def test_a_run_survives_workers_that_are_stopped_and_killed(ground: Ground) -> None:
    """One worker leaves in order while the run waits, the next is killed, and a third ends it."""
    cell = ground.local_cell("three workers")
    handle = await cell.start()
    async with WorkerProcess(cell.settings, cell.connection) as first:
        await cell.waiting(handle)
        os.kill(first.pid, signal.SIGTERM)
        assert 0 == await first.wait()
    async with WorkerProcess(cell.settings, cell.connection) as second:
        os.kill(second.pid, signal.SIGKILL)
        await second.wait()
    await cell.approve(handle)
    async with WorkerProcess(cell.settings, cell.connection):
        record = await cell.record(handle)
    _see_that_it_is_whole(record)
    assert ["call_tool", "final"] == [decision.kind for decision in record.decisions]
