"""One measurement: windows of runs on all arms at once, and what each arm used for a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from temporalio.api.history.v1 import HistoryEvent

from benchmarks.arms import FLOOR, FLOOR_AGAIN, PRODUCT, Arm, Handle, peers_of
from benchmarks.counters import PUBLISHED_SECONDS, read_actions
from benchmarks.load import Load
from benchmarks.pages import database_bytes
from benchmarks.plan import Plan, Shape
from benchmarks.procfs import Neighbours, processes
from benchmarks.stacks import PARTS
from benchmarks.stats import Spread, counts, ratios

TOTAL: Final = "total"
_LOOKED_AT: Final = 5


@dataclass(frozen=True, slots=True)
class Window:
    """What one window cost.

    Attributes:
        runs: of each arm.
        cpu_seconds: for one run, by arm and part; `TOTAL` is the sum of the parts.
        others: the share of the machine's time that somebody else used.
    """

    runs: int
    cpu_seconds: dict[str, dict[str, float]]
    others: float


@dataclass(frozen=True, slots=True)
class Counted:
    """What does not depend on the machine, for one run.

    Attributes:
        events: in its history.
        bytes: of its history.
        actions: that the server bills.
        kept: bytes that it leaves in each database of the arm's that is an SQLite file, by name.
        kinds: how many events of each kind the last run has, and how many bytes they take.
    """

    events: float
    bytes: float
    actions: float
    kinds: dict[str, tuple[int, int]]
    kept: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measurement:
    """All windows of one shape; nothing is counted where the measurement ended early."""

    shape: str
    arms: tuple[str, ...]
    windows: tuple[Window, ...]
    counted: dict[str, Counted] = field(default_factory=dict)

    def spread(self, arm: str, part: str, against: str = FLOOR) -> Spread | None:
        """Return an arm's CPU time for a run against another's; None for what it has not."""
        mine = [window.cpu_seconds[arm].get(part, 0.0) for window in self.windows]
        base = [window.cpu_seconds[against].get(part, 0.0) for window in self.windows]
        found = ratios(mine, base)
        return Spread.of(found) if any(mine) and found else None

    def against_peers(self) -> dict[str, Spread]:
        """Return the product's CPU time for a run against that of each peer, by its name."""
        found = {peer: self.spread(PRODUCT, TOTAL, peer) for peer in peers_of(self.arms)}
        return {peer: spread for peer, spread in found.items() if spread}

    def bytes_of_peers(self) -> dict[str, float]:
        """Return how many times the product's bytes the history of each peer's run has."""
        counted = self.counted
        return {peer: counted[peer].bytes / counted[PRODUCT].bytes for peer in peers_of(counted)}

    def milliseconds(self, arm: str, part: str) -> float:
        """Return an arm's CPU time for a run on this machine: the middle of all windows."""
        return 1_000 * median(w.cpu_seconds[arm].get(part, 0.0) for w in self.windows)

    @property
    def others(self) -> float:
        """The share of the machine's time that somebody else used."""
        return median(window.others for window in self.windows)

    @property
    def counts(self) -> bool:
        """Whether the floor against itself came out as one."""
        again = self.spread(FLOOR_AGAIN, TOTAL)
        return again is not None and counts(again)


async def measure(arms: Sequence[Arm], shape: Shape, plan: Plan) -> AsyncIterator[Measurement]:
    """Warm up for one window, measure the others, and count what the runs left behind.

    Yields:
        After each window all that were measured up to then; last the same with what was counted.
    """
    for arm in arms:
        await arm.prepare(shape)
    load = Load(arms, shape, plan.slots)
    before, empty = await _actions(arms), _databases(arms)
    await load.play(plan.seconds)
    found = Measurement(shape.name, tuple(arm.name for arm in arms), ())
    for _ in range(plan.windows):
        window = await _window(arms, load, plan.seconds)
        found = replace(found, windows=(*found.windows, window))
        yield found
    after, filled = await _actions(arms), _databases(arms)
    counted = {}
    for name, runs in load.finished.items():
        kept = {db: (size - empty[name][db]) / len(runs) for db, size in filled[name].items()}
        actions = (after[name] - before[name]) / len(runs)
        counted[name] = replace(await _counted(runs), actions=actions, kept=kept)
    yield replace(found, counted=counted)


async def _window(arms: Sequence[Arm], load: Load, seconds: float) -> Window:
    used, neighbours = _used(arms), Neighbours()
    runs = await load.play(seconds)
    used_after, others = _used(arms), neighbours.share()
    cpu_seconds = {
        name: {part: (after[part] - used[name][part]) / runs for part in after}
        for name, after in used_after.items()
    }
    return Window(runs, cpu_seconds, others)


def _used(arms: Sequence[Arm]) -> dict[str, dict[str, float]]:
    seen = processes()
    found: dict[str, dict[str, float]] = {}
    for arm in arms:
        usage = arm.stack.usage(seen)
        parts: dict[str, float] = {p: usage[p].cpu_seconds for p in PARTS if p in usage}
        found[arm.name] = {**parts, TOTAL: sum(parts.values())}
    return found


async def _actions(arms: Sequence[Arm]) -> dict[str, int]:
    await asyncio.sleep(PUBLISHED_SECONDS)
    return {arm.name: await asyncio.to_thread(read_actions, arm.stack.log) for arm in arms}


def _databases(arms: Sequence[Arm]) -> dict[str, dict[str, int]]:
    return {arm.name: database_bytes(arm.stack.log.parent) for arm in arms}


async def _counted(runs: Sequence[Handle]) -> Counted:
    infos = [
        (await run.describe()).raw_description.workflow_execution_info for run in runs[-_LOOKED_AT:]
    ]
    return Counted(
        events=median(info.history_length for info in infos),
        bytes=median(info.history_size_bytes for info in infos),
        actions=0.0,
        kinds=event_kinds((await runs[-1].fetch_history()).events),
    )


def event_kinds(events: Sequence[HistoryEvent]) -> dict[str, tuple[int, int]]:
    """Count events and their bytes by kind, in the order in which they come first."""
    found: dict[str, tuple[int, int]] = {}
    for event in events:
        kind = _kind(event)
        number, size = found.get(kind, (0, 0))
        found[kind] = (number + 1, size + event.ByteSize())
    return found


def _kind(event: HistoryEvent) -> str:
    attributes = (event.WhichOneof("attributes") or "unknown").removesuffix("_event_attributes")
    if attributes.startswith("workflow_task_"):
        return "workflow_task"
    return attributes.removeprefix("workflow_execution_")
