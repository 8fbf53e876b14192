"""Runs of all arms are played in step, with arms that only note what is asked of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest

from benchmarks.arms import Handle, WrongEnd
from benchmarks.load import Load
from benchmarks.plan import A, Shape, W
from benchmarks.stacks import Stack


@dataclass
class NotingArm:
    """An arm without processes, whose runs take some turns of the event loop.

    Attributes:
        looks: how often a run has to be asked before it waits.
        noted: what was asked of it, in order.
    """

    name: str
    turns: int = 1
    looks: int = 1
    fails: bool = False
    noted: list[str] = field(default_factory=list)
    stack: Stack = cast("Stack", None)  # noqa: RUF009 - there is none to share

    async def prepare(self, shape: Shape) -> None:
        """Note nothing."""

    async def start(self, shape: Shape, run_id: str) -> Handle:
        """Note a start."""
        self.noted.append("start")
        return cast("Handle", run_id)

    async def is_waiting(self, shape: Shape, run: Handle) -> bool:
        """Note a question."""
        self.noted.append("look")
        return self.noted.count("look") >= self.looks

    async def approve(self, run: Handle) -> None:
        """Note an approval."""
        self.noted.append("approve")

    async def finish(self, run: Handle) -> None:
        """Take some time, and note the end."""
        for _ in range(self.turns):
            await asyncio.sleep(0)
        if self.fails:
            raise WrongEnd("it ended otherwise")
        self.noted.append("finish")


async def test_a_slow_arm_and_a_quick_one_end_as_many_runs() -> None:
    """All arms have the same work in a window, whatever their speed."""
    quick, slow = NotingArm("quick"), NotingArm("slow", turns=50)
    load = Load([quick, slow], W, slots=3)
    runs = await load.play(0.05)
    assert runs >= 3
    assert {"quick": runs, "slow": runs} == {n: len(ended) for n, ended in load.finished.items()}
    assert quick.noted.count("finish") == slow.noted.count("finish") == runs


async def test_a_slot_plays_one_round_at_least() -> None:
    """A window that is shorter than a run still has whole runs, and nothing left in flight."""
    arm = NotingArm("arm", turns=100)
    assert 2 == await Load([arm], W, slots=2).play(0.0)
    assert ["start", "start", "finish", "finish"] == sorted(arm.noted, reverse=True)


async def test_all_servers_are_asked_alike_until_all_runs_wait() -> None:
    """An arm that waits at once is asked as often as the one that does not, then both go on."""
    early, late = NotingArm("early"), NotingArm("late", looks=3)
    await Load([early, late], A, slots=1).one_of_each()
    assert ["start", "look", "look", "look", "approve", "finish"] == early.noted == late.noted


async def test_a_run_with_another_end_ends_the_measurement() -> None:
    """What such a run cost says nothing, so its error arrives as it is."""
    with pytest.raises(WrongEnd):
        await Load([NotingArm("arm", fails=True)], W, slots=2).play(0.0)
