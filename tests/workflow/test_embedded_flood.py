"""Signals that pile up while no worker is there leave a run that can still be approved."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from temporalio.service import RPCError

from tests.workflow.decisions import final, label
from tests.workflow.runs import Run
from tests.workflow.world import World, opened_services, opened_world
from triage.contracts.names import TASK_QUEUE
from triage.contracts.response import Status
from triage.embedded import EmbeddedServer, ServerOptions

SENT = 1_100


async def _send(run: Run, number: int) -> bool:
    try:
        await run.signal("noise", {"n": number})
    except RPCError:
        return False
    return True


@pytest.mark.long
async def test_a_flood_without_a_worker_leaves_a_run_that_works(tmp_path: Path) -> None:
    """The embedded server refuses the rest to its sender; what it took is counted, and no more."""
    async with (
        EmbeddedServer(ServerOptions(db_filename=tmp_path / "temporal.db")) as server,
        opened_services(tmp_path) as services,
    ):
        world = World(client=server.client, services=services, queue=TASK_QUEUE)
        script = [label(), final("mutation-receipt", labels=("bug",))]
        run = await world.start(*script, mode="approve")
        taken = 0
        for start in range(0, SENT, 20):
            taken += sum(await asyncio.gather(*(_send(run, start + n) for n in range(20))))
        assert 1_000 == taken
        async with opened_world(server.client, services, tmp_path):
            await run.waiting()
            assert taken == (await run.state()).refusals_total
            assert [] == await run.task_failures()
            assert (await run.review("approve")).accepted
            assert Status.COMPLETED is (await run.response()).status
