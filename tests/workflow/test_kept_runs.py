"""A worker that keeps few runs in memory still answers everybody who asks about the others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.worker import Worker

import worker
from tests.workflow.decisions import final, label, lookup
from tests.workflow.runs import Run, eventually
from tests.workflow.world import World, a_settings, dev_server, opened_services
from triage.contracts.names import TASK_QUEUE
from triage.contracts.response import Status
from triage.settings import Role

KEPT = 10
WAITING = 40
PEOPLE = 12
LOOKS = 20
SCRIPT = [lookup(), label(), final("mutation-receipt", labels=("bug",))]


@dataclass(frozen=True)
class Crowd:
    """Many runs that wait, and the worker that keeps few of them."""

    runs: list[Run]
    deciding: Worker

    def in_memory(self) -> int:
        """How many runs the SDK holds; it has no public name for that."""
        held = self.deciding._workflow_worker
        assert held is not None
        return len(held._running_workflows)


@pytest.fixture(scope="module")
async def crowd(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Crowd]:
    """The production worker with room for ten runs, on a server of its own."""
    home: Path = tmp_path_factory.mktemp("kept")
    settings = a_settings(home).model_copy(update={"cached_runs": KEPT})
    async with (
        await dev_server() as server,
        opened_services(home) as services,
        AsyncExitStack() as running,
    ):
        workers = worker.build_workers(server.client, settings, services)
        assert settings.roles[0] is Role.DECIDE
        for part in workers:
            await running.enter_async_context(part)
        world = World(client=server.client, services=services, queue=TASK_QUEUE)
        runs = await asyncio.gather(*(world.start(*SCRIPT, mode="approve") for _ in range(WAITING)))
        await asyncio.gather(*(run.waiting_at(6) for run in runs))
        yield Crowd(runs, workers[0])


async def test_everybody_who_looks_is_answered(crowd: Crowd) -> None:
    """Several people look at runs that are not in memory, at the same ones, too, and all see them.

    A worker whose cache was full lost such questions, and its slots with them, till it took none.
    """
    chance = random.Random(5)  # noqa: S311 - only an order is chosen by it

    async def look() -> list[int]:
        found = [await run.pending() for run in chance.choices(crowd.runs, k=LOOKS)]
        return [pending.version for pending in found if pending]

    answers = await asyncio.gather(*(look() for _ in range(PEOPLE)))
    assert [[6] * LOOKS] * PEOPLE == answers


async def test_what_nobody_uses_is_let_go_of(crowd: Crowd) -> None:
    """After a busy time a worker holds as many runs as it is told; each is there when asked."""
    last = crowd.runs[-1]

    async def has_let_go() -> bool:
        await last.pending()
        return crowd.in_memory() <= KEPT

    await eventually(has_let_go)
    await crowd.runs[0].review("approve")
    await crowd.runs[0].response()
    assert Status.COMPLETED is (await crowd.runs[0].state()).status
    assert [] == await crowd.runs[0].task_failures()
