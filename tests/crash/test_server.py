"""The server is killed and started again on its file, under runs in every kind of step."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.crash.nursery import Process
from tests.crash.paused_worker import FREEZE
from tests.crash.scene import Cell, Handle, Record, make_template, opened_cell
from triage.embedded import EmbeddedServer, ServerOptions, free_port

PLACES = ("before decide 1", "after lookup_component_owner 1", "before send", "after send")


async def _begin(cell: Cell, place: str | None) -> tuple[Process, Handle]:
    """Bring a run to the place and hold it there, or let it wait for a person."""
    worker = await cell.worker(place, FREEZE)
    handle = await cell.start()
    if place is None:
        await cell.waiting(handle)
    elif place in {"before send", "after send"}:
        await cell.approve(handle)
    if place:
        await worker.frozen()
    return worker, handle


async def _go_on(cell: Cell, place: str | None, worker: Process, handle: Handle) -> Record:
    """Let the same worker, which knows nothing of the new server, carry the run to its end."""
    approval = asyncio.create_task(cell.approve(handle))
    if place:
        await worker.thaw()
    record = await cell.record(handle)
    approval.cancel()
    await worker.kill()
    return record


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_killed_server_changes_nothing(
    tmp_path: Path, undisturbed: Record, subtests: pytest.Subtests
) -> None:
    """Runs go on from where they stood: while deciding, reading, waiting and writing."""
    template = await make_template(tmp_path)
    options = ServerOptions(port=free_port(), db_filename=tmp_path / "temporal.db")
    places = (None, *PLACES)
    async with EmbeddedServer(options) as server:
        cells = [
            opened_cell(f"server {place}", server.client, server.environment(), template)
            for place in places
        ]
        begun = await asyncio.gather(*map(_begin, cells, places))
        os.kill(server.pid, signal.SIGKILL)
        await server.wait()
    async with EmbeddedServer(options):
        records = await asyncio.gather(
            *(
                _go_on(cell, place, *run)
                for cell, place, run in zip(cells, places, begun, strict=True)
            )
        )
    for place, record in zip(places, records, strict=True):
        with subtests.test(place or "waiting for a person"):
            assert undisturbed == record
