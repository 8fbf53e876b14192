"""Many runs that wait for a person: what they hold, and how fast they go on once approved."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from benchmarks.arms import PRODUCT, REPOSITORY, Arm, Handle
from benchmarks.load import start_each, until_all_wait
from benchmarks.plan import A, Plan
from benchmarks.procfs import Opened, processes
from benchmarks.stacks import FLOOR_ROLES, product_roles
from triage.storage.engine import Store
from triage.trackers.local import LocalTracker
from triage.trackers.local_people import IssueRecord

SLOTS: Final = 16
_APPROVERS: Final = 32


@dataclass(frozen=True, slots=True)
class Held:
    """What one arm held while its runs waited, and what their end took.

    Attributes:
        empty_bytes: of each part before the first run.
        waiting_bytes: of each part with all runs waiting.
        cpu_seconds: of each part for one run, from its approval to its end.
        runs_a_second: from the first approval to the last end.
        empty: what its workers had open before the first run.
        waiting: the same with all runs waiting.
    """

    empty_bytes: dict[str, int]
    waiting_bytes: dict[str, int]
    cpu_seconds: dict[str, float]
    runs_a_second: float
    empty: Opened = field(default_factory=Opened)
    waiting: Opened = field(default_factory=Opened)


@dataclass(frozen=True, slots=True)
class Wait:
    """All arms, with the same number of runs.

    Attributes:
        runs: of each.
        killed: whether the workers were killed half-way.
        wrong: labels that were put on more than once, and runs without any.
    """

    runs: int
    killed: bool
    held: dict[str, Held]
    wrong: int


async def measure_waiting(arms: Sequence[Arm], plan: Plan) -> Wait:
    """Let runs of all arms wait, look at the memory, and approve one arm's after the other's."""
    empty, at_first = {arm.name: _memory(arm) for arm in arms}, _opened(arms)
    waiting = await _all_waiting(arms, plan.waiting)
    full, at_last = {arm.name: _memory(arm) for arm in arms}, _opened(arms)
    held, wrong = {}, 0
    for position, arm in enumerate(arms):
        runs = [each[position] for each in waiting]
        rate, cpu = await _approve_all(arm, runs, plan)
        name = arm.name
        held[name] = Held(empty[name], full[name], cpu, rate, at_first[name], at_last[name])
        if arm.name == PRODUCT:
            wrong = await _wrong_writes(arm, runs)
    return Wait(plan.waiting, plan.kill, held, wrong)


def _opened(arms: Sequence[Arm]) -> dict[str, Opened]:
    return {arm.name: Opened.by(arm.stack.roots["worker"]) for arm in arms}


def _memory(arm: Arm) -> dict[str, int]:
    used = arm.stack.usage(processes())
    return {part: usage.resident_bytes for part, usage in used.items()}


async def _all_waiting(arms: Sequence[Arm], count: int) -> list[list[Handle]]:
    waiting: list[list[Handle]] = []
    todo = iter(range(count))

    async def slot() -> None:
        for _ in todo:
            runs = await start_each(arms, A)
            await until_all_wait(arms, A, runs)
            waiting.append(runs)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(SLOTS, count)):
            group.create_task(slot())
    return waiting


async def _approve_all(
    arm: Arm, runs: Sequence[Handle], plan: Plan
) -> tuple[float, dict[str, float]]:
    """Approve all runs and see them to their end.

    Returns:
        How many ended a second, and the CPU time of each part for one.
    """
    half, spent = len(runs) // 2, Counter[str]()
    begun, before = time.monotonic(), _cpu(arm)
    await _for_each(runs[:half], arm.approve)
    if plan.kill:
        # What a process used is gone with it.
        spent += _cpu(arm) - before
        await _restart(arm, plan)
        before = _cpu(arm)
    await _for_each(runs[half:], arm.approve)
    await _for_each(runs, arm.finish)
    seconds = time.monotonic() - begun
    spent += _cpu(arm) - before
    return len(runs) / seconds, {part: spent[part] / 1e6 / len(runs) for part in spent}


def _cpu(arm: Arm) -> Counter[str]:
    # A counter of seconds, in microseconds: they can be added and taken away.
    used = arm.stack.usage(processes())
    return Counter({part: round(1e6 * usage.cpu_seconds) for part, usage in used.items()})


async def _for_each(runs: Sequence[Handle], action: Callable[[Handle], Awaitable[None]]) -> None:
    todo = iter(runs)

    async def slot() -> None:
        for run in todo:
            await action(run)

    async with asyncio.TaskGroup() as group:
        for _ in range(_APPROVERS):
            group.create_task(slot())


async def _restart(arm: Arm, plan: Plan) -> None:
    """Kill the arm's workers, as a crash would, and start others in their place."""
    for worker in arm.stack.workers:
        os.kill(worker.pid, signal.SIGKILL)
        await worker.wait()
    await arm.stack.start_workers(product_roles(plan) if arm.name == PRODUCT else FLOOR_ROLES)


async def _wrong_writes(arm: Arm, runs: Sequence[Handle]) -> int:
    """Count labels that the tracker's own log has not exactly once."""
    wrong = 0
    async with _tracker(arm) as tracker:
        for run in runs:
            record = await tracker.show_issue(REPOSITORY, run.id)
            events = record.events if isinstance(record, IssueRecord) else ()
            labels = [event.label for event in events if event.label]
            wrong += (not labels) or len(labels) - len(set(labels))
    return wrong


@asynccontextmanager
async def _tracker(arm: Arm) -> AsyncIterator[LocalTracker]:
    store = await Store.open(arm.stack.settings.database_url)
    try:
        yield LocalTracker(store)
    finally:
        await store.close()
