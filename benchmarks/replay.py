"""How fast histories are replayed: a worker that lost its cache, and the gate, pay for this."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.worker import Replayer, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from benchmarks.arms import FLOOR, FLOOR_AGAIN, PRODUCT, Arm, peers_of
from benchmarks.floor import Floor
from benchmarks.load import Load
from benchmarks.plan import W
from benchmarks.stats import Spread, counts, ratios
from triage.converter import data_converter
from triage.sandbox import bare, sandboxed
from workflows.issue_triage import IssueTriage

HISTORIES: Final = 30
ROUNDS: Final = 3
"""Turns of each arm in a window, in another order each time: short ones, so that what else goes on
on the machine meets all of them alike."""
_PRODUCT: Final = (IssueTriage,)


class ReplayFailed(Exception):  # noqa: N818 - names what was found
    """A history that was recorded a moment ago does not replay."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Something a second, window by window; of a replay, of CPU time.

    Attributes:
        windows: by arm.
    """

    windows: dict[str, tuple[float, ...]]

    def spread(self, arm: str) -> Spread:
        """Return an arm's speed against the floor's; more is faster."""
        return self._against(arm, FLOOR)

    def against_peers(self) -> dict[str, Spread]:
        """Return the product's speed against that of each peer, by its name; more is faster."""
        return {peer: self._against(PRODUCT, peer) for peer in peers_of(self.windows)}

    def _against(self, arm: str, other: str) -> Spread:
        return Spread.of(ratios(self.windows[arm], self.windows[other]))

    @property
    def counts(self) -> bool:
        """Whether the floor against itself came out as one."""
        return counts(self.spread(FLOOR_AGAIN))


@dataclass(frozen=True, slots=True)
class Replay:
    """How fast W is replayed: by events, and by whole histories, for they differ in length."""

    events: Speed
    histories: Speed


async def measure_replay(arms: Sequence[Arm], windows: int, *, sandbox: bool) -> Replay:
    """Record histories of W, then replay them in this process, each arm's in turn.

    CPU time of this process is what is counted, so it does not matter that the arms take turns.
    """
    runtime = Runtime(telemetry=TelemetryConfig(logging=None))
    histories = await _histories(arms)
    runner = sandboxed() if sandbox else bare()
    product = _replayer(_PRODUCT, data_converter, runner, runtime)
    floor = _replayer([Floor], DataConverter.default, SandboxedWorkflowRunner(), runtime)
    replayers = {FLOOR: floor, FLOOR_AGAIN: floor, PRODUCT: product}
    order = [name for name in histories if name in replayers]
    lengths = {name: len(found[0].events) for name, found in histories.items()}
    speeds: dict[str, list[float]] = {name: [] for name in order}
    for window in range(windows + 1):
        spent = Counter[str]()
        for _ in range(ROUNDS):
            order.append(order.pop(0))
            for name in order:
                spent[name] += await _replay(replayers[name], histories[name])
        if window > 0:
            for name, found in speeds.items():
                found.append(1e9 * ROUNDS * HISTORIES / spent[name])
    by_events = {n: tuple(lengths[n] * each for each in found) for n, found in speeds.items()}
    by_histories = {name: tuple(found) for name, found in speeds.items()}
    return Replay(Speed(by_events), Speed(by_histories))


def _replayer(
    workflows: Sequence[type], converter: DataConverter, runner: WorkflowRunner, runtime: Runtime
) -> Replayer:
    return Replayer(
        workflows=workflows, data_converter=converter, workflow_runner=runner, runtime=runtime
    )


async def _histories(arms: Sequence[Arm]) -> dict[str, list[WorkflowHistory]]:
    load = Load(arms, W, 1)
    await load.one_of_each()
    return {
        name: [await runs[0].fetch_history()] * HISTORIES for name, runs in load.finished.items()
    }


async def _replay(replayer: Replayer, histories: Sequence[WorkflowHistory]) -> int:
    """Replay histories and return how many nanoseconds of CPU time that took."""
    begun = time.process_time_ns()
    async with replayer.workflow_replay_iterator(_each(histories)) as results:
        async for result in results:
            if result.replay_failure is not None:
                raise ReplayFailed(str(result.replay_failure))
    return time.process_time_ns() - begun


async def _each(histories: Sequence[WorkflowHistory]) -> AsyncIterator[WorkflowHistory]:
    for history in histories:
        yield history
