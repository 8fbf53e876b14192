"""The sweeper knows whose write a row is, and real workers run it."""

from __future__ import annotations

from pathlib import Path

from temporalio.client import Client

from activities.sweeper import Sweeper
from tests.activities.leftovers import opened
from tests.workflow.decisions import OPERATION, final, label
from tests.workflow.resets import reset
from tests.workflow.runs import Run, eventually
from tests.workflow.world import World, a_settings, opened_services
from triage.embedded import WorkerProcess
from triage.storage.operations import OperationRecord
from triage.storage.transitions import OperationState


async def _record(world: World, run: Run) -> OperationRecord:
    [record] = await world.services.ledger.list(workflow_id=run.id)
    return record


async def test_a_row_is_known_as_its_run_s_until_that_is_over(world: World) -> None:
    """One that waits, the same one after a reset, and none; what was written before is a replay."""
    sweeper = Sweeper(world.client, world.services)
    script = [label(), label("documentation", operation_id="op-2"), final("mutation-receipt")]
    run = await world.start(*script, mode="approve", approvals={OPERATION: 3})
    await run.waiting()
    before = await run.state()
    record = await _record(world, run)
    assert await sweeper._lives(record)
    latest = await reset(world.client, run)
    await latest.waiting()
    assert await sweeper._lives(record)
    # What the run had written before is no write of the run after.
    assert ["applied"] == [view.state for view in before.operations]
    assert ["replayed"] == [view.state for view in (await latest.state()).operations]
    await latest.handle.terminate()
    assert not await sweeper._lives(record)


async def test_a_worker_settles_what_a_terminated_run_left(server: Client, tmp_path: Path) -> None:
    """A real worker process makes its passes by itself, every so often."""
    settings = a_settings(tmp_path).model_copy(
        update={"sweep_period_seconds": 0.2, "task_queue": "sweeping"}
    )
    address = {"TEMPORAL_ADDRESS": server.service_client.config.target_host}
    async with opened_services(tmp_path) as services:
        left = await opened(server, services)
        key = await left.row(await left.terminated(), OperationState.UNKNOWN)
        await left.commit(key)

        async def applied() -> bool:
            return (await left.record(key)).state is OperationState.RECONCILED_APPLIED

        async with WorkerProcess(settings, address, log=tmp_path / "worker.log"):
            await eventually(applied)
    assert "looked after a write" in (tmp_path / "worker.log").read_text()
