"""The server is killed and started again on its file, under runs in every kind of step."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.crash.nursery import Process
from tests.crash.places import Action, Place
from tests.crash.records import Record, differences
from tests.crash.scene import Cell, Ground, Handle, make_template
from tests.ports import kept_port
from triage.embedded import EmbeddedServer, ServerOptions
from triage.faults import Point

PLACES = (
    None,
    Place(Point.DECIDE_BEFORE_MODEL),
    Place(Point.READ_AFTER_KEEP),
    Place(Point.WRITE_BEFORE_SEND),
    Place(Point.WRITE_AFTER_SEND),
)


async def _begin(cell: Cell, place: Place | None) -> tuple[Process, Handle]:
    """Bring a run to the place and hold it there, or let it wait for a person."""
    worker = await cell.worker(place, Action.FREEZE)
    handle = await cell.start()
    if place is None:
        await cell.waiting(handle)
    elif place.point.startswith("write."):
        await cell.approve(handle)
    if place:
        await worker.frozen()
    return worker, handle


async def _go_on(cell: Cell, place: Place | None, worker: Process, handle: Handle) -> Record:
    """Let the same worker, which knows nothing of the new server, carry the run to its end."""
    approval = asyncio.create_task(cell.approve(handle))
    if place:
        await worker.thaw()
    record = await cell.record(handle)
    approval.cancel()
    await worker.kill()
    return record


@pytest.mark.slow
async def test_a_killed_server_changes_nothing(
    tmp_path: Path, undisturbed: Record, subtests: pytest.Subtests
) -> None:
    """Runs go on from where they stood: while deciding, reading, waiting and writing."""
    template = await make_template(tmp_path)
    async with AsyncExitStack() as opened:
        port = opened.enter_context(kept_port())
        options = ServerOptions(port=port, db_filename=tmp_path / "temporal.db")
        async with EmbeddedServer(options) as server:
            ground = Ground(
                client=server.client, connection=server.environment(), template=template
            )
            cells = [
                await opened.enter_async_context(ground.cell(f"server {place}")) for place in PLACES
            ]
            begun = await asyncio.gather(*map(_begin, cells, PLACES))
            os.kill(server.pid, signal.SIGKILL)
            await server.wait()
        async with EmbeddedServer(options):
            runs = zip(cells, PLACES, begun, strict=True)
            records = await asyncio.gather(*(_go_on(c, p, *run) for c, p, run in runs))
    for place, record in zip(PLACES, records, strict=True):
        with subtests.test(str(place or "waiting for a person")):
            assert [] == differences(undisturbed, record)
