"""Runs of all arms, in step: every slot plays one of each, and the next when all have ended.

Why it exists: arms that run at their own speeds end different numbers of runs in a window, and
then what a server does all the time is charged to them unequally. In step, each arm has the same
work and the same idle time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

from benchmarks.arms import Arm, Handle
from benchmarks.plan import Shape

LOOK_SECONDS: Final = 0.1
RUN_SECONDS: Final = 300.0
"""What a run may take before the measurement is given up."""


class Load:
    """Plays runs of one shape on all arms.

    Attributes:
        finished: the runs of each arm, by its name, in the order in which they ended.
    """

    def __init__(self, arms: Sequence[Arm], shape: Shape, slots: int) -> None:
        self._arms = arms
        self._shape = shape
        self._slots = slots
        self.finished: dict[str, list[Handle]] = {arm.name: [] for arm in arms}

    async def play(self, seconds: float) -> int:
        """Play for `seconds` and until nothing is in flight; return how many runs of each ended.

        Raises:
            WrongEnd: a run did not end as it should.
            TimeoutError: one did not end at all.
        """
        until = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.TaskGroup() as group:
                slots = [group.create_task(self._slot(until)) for _ in range(self._slots)]
        except ExceptionGroup as faults:
            raise faults.exceptions[0] from None
        return sum(slot.result() for slot in slots)

    async def _slot(self, until: float) -> int:
        clock, rounds = asyncio.get_running_loop().time, 0
        while rounds == 0 or clock() < until:
            async with asyncio.timeout(RUN_SECONDS):
                await self.one_of_each()
            rounds += 1
        return rounds

    async def one_of_each(self) -> None:
        """Play one run of each arm to its end."""
        runs = await start_each(self._arms, self._shape)
        if self._shape.waits:
            await until_all_wait(self._arms, self._shape, runs)
            await asyncio.gather(
                *(arm.approve(run) for arm, run in zip(self._arms, runs, strict=True))
            )
        await asyncio.gather(*(arm.finish(run) for arm, run in zip(self._arms, runs, strict=True)))
        for arm, run in zip(self._arms, runs, strict=True):
            self.finished[arm.name].append(run)


async def start_each(arms: Sequence[Arm], shape: Shape) -> list[Handle]:
    """Start a run of each arm."""
    return await asyncio.gather(*(arm.start(shape, f"run-{uuid4().hex}") for arm in arms))


async def until_all_wait(arms: Sequence[Arm], shape: Shape, runs: Sequence[Handle]) -> None:
    """Ask every arm's server alike, until all runs wait for a person."""
    while True:
        looks = (arm.is_waiting(shape, run) for arm, run in zip(arms, runs, strict=True))
        if all(await asyncio.gather(*looks)):
            return
        # A server has no event for it that costs all arms the same.
        await asyncio.sleep(LOOK_SECONDS)
