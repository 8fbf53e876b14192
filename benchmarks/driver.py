"""Plays a plan from its start to its end, and leaves nothing running."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from compileall import compile_dir
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.arms import FLOOR_AGAIN, Arm, FloorArm, ProductArm
from benchmarks.cold_start import measure_cold_starts
from benchmarks.measure import measure
from benchmarks.peers.loading import find_peer
from benchmarks.plan import W_API, A, Plan, Shape, W, long_run
from benchmarks.replay import measure_replay
from benchmarks.results import Results, environment
from benchmarks.room import enough_room
from benchmarks.stacks import floor_stack, product_stack
from benchmarks.throughput import measure_throughput
from benchmarks.waiting import measure_waiting

_ROOT: Final = Path(__file__).parents[1]


async def play(plan: Plan, command: str, results: Results) -> None:
    """Measure everything that a plan names; what is found is there as soon as it was found.

    Raises:
        NoPeer: a peer cannot be played; that is found before anything runs.
        WrongEnd: a run did not end as it should, so what it cost says nothing.
        EmbeddedError: a server or a worker did not start.
        NoSpace: the disk became full.
    """
    results.environment |= environment(plan, command)
    _compile()
    with TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        async with enough_room(folder.parent):
            async with _arms(plan, folder / "run") as arms:
                await _on_running(arms, plan, results, folder)
            if "waiting" in plan.arms:
                _say(f"{plan.waiting} waiting runs")
                async with _arms(plan, folder / "wait", again=False) as arms:
                    with results.watching("waiting"):
                        results.waits.append(await measure_waiting(arms, plan))


async def _on_running(arms: Sequence[Arm], plan: Plan, results: Results, folder: Path) -> None:
    for shape in _shapes(plan):
        _say(f"{shape.name}: {plan.windows} windows of {plan.seconds:g} s at least")
        async for found in measure(arms, shape, plan):
            results.put(found)
    if "replay" in plan.arms:
        _say("replay")
        with results.watching("replay"):
            results.replay = await measure_replay(arms, plan.windows, sandbox=plan.sandbox)
    if "embedded" in plan.arms:
        _say("embedded profile, each arm alone")
        with results.watching("embedded"):
            results.embedded = await measure_throughput(arms, plan)
    if "cold" in plan.arms:
        _say("cold start")
        with results.watching("cold"):
            connection = arms[0].stack.connection
            results.cold_starts += await measure_cold_starts(connection, folder)


def _shapes(plan: Plan) -> list[Shape]:
    shapes = [shape for shape in (W, A, W_API) if shape.name in plan.arms]
    return shapes + [long_run(steps) for steps in plan.steps if "steps" in plan.arms]


@asynccontextmanager
async def _arms(plan: Plan, folder: Path, *, again: bool = True) -> AsyncIterator[list[Arm]]:
    """Run what the arms need: the floor, the floor again if it is wanted, the product, peers."""
    async with AsyncExitStack() as running:
        enter = running.enter_async_context
        arms: list[Arm] = [FloorArm(await enter(floor_stack(plan, folder / "floor")))]
        if again:
            stack = await enter(floor_stack(plan, folder / "again"))
            arms.append(FloorArm(stack, FLOOR_AGAIN))
        arms.append(ProductArm(await enter(product_stack(plan, folder / "product"))))
        for number, name in enumerate(plan.peers):
            arms.append(await enter(find_peer(name)(plan, folder / f"peer-{number}")))
        yield arms


def _compile() -> None:
    """Write byte code as an installed wheel has it; replaying in this process needs it, too."""
    for name in ("benchmarks", "triage", "workflows"):
        compile_dir(_ROOT / name, quiet=2)


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)  # noqa: T201 - for whoever waits
