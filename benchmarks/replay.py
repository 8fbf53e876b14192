"""How fast histories are replayed: a worker that lost its cache, and the gate, pay for this."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from benchmarks.arms import FLOOR, FLOOR_AGAIN, PRODUCT, Arm
from benchmarks.floor import Floor
from benchmarks.load import Load
from benchmarks.plan import W
from benchmarks.stats import Spread, counts, ratios
from triage.converter import data_converter
from triage.sandbox import sandbox_for
from workflows.evidence_loop import EvidenceLoop
from workflows.issue_triage import IssueTriage
from workflows.unknown import UnknownWorkflow

HISTORIES: Final = 40
_PRODUCT: Final = (IssueTriage, EvidenceLoop, UnknownWorkflow)


class ReplayFailed(Exception):  # noqa: N818 - names what was found
    """A history that was recorded a moment ago does not replay."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Events a second of CPU time, window by window.

    Attributes:
        windows: by arm.
    """

    windows: dict[str, tuple[float, ...]]

    def spread(self, arm: str) -> Spread:
        """Return an arm's speed against the floor's; more is faster."""
        return Spread.of(ratios(self.windows[arm], self.windows[FLOOR]))

    @property
    def counts(self) -> bool:
        """Whether the floor against itself came out as one."""
        return counts(self.spread(FLOOR_AGAIN))


async def measure_replay(arms: Sequence[Arm], windows: int, *, sandbox: bool) -> Speed:
    """Record histories of W, then replay them in this process, each arm's in turn.

    CPU time of this process is what is counted, so it does not matter that the arms take turns.
    """
    runtime = Runtime(telemetry=TelemetryConfig(logging=None))
    histories = await _histories(arms)
    runner = sandbox_for(_PRODUCT) if sandbox else UnsandboxedWorkflowRunner()
    product = _replayer(_PRODUCT, data_converter, runner, runtime)
    floor = _replayer([Floor], DataConverter.default, SandboxedWorkflowRunner(), runtime)
    replayers = {FLOOR: floor, FLOOR_AGAIN: floor, PRODUCT: product}
    speeds: dict[str, list[float]] = {name: [] for name in histories if name in replayers}
    for window in range(windows + 1):
        for name, found in speeds.items():
            speed = await _speed(replayers[name], histories[name])
            if window > 0:
                found.append(speed)
    return Speed({name: tuple(found) for name, found in speeds.items()})


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


async def _speed(replayer: Replayer, histories: Sequence[WorkflowHistory]) -> float:
    begun, events = time.process_time(), 0
    for history in histories:
        result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        if result.replay_failure is not None:
            raise ReplayFailed(str(result.replay_failure))
        events += len(history.events)
    # Whatever the SDK still does in its own threads belongs to the replay.
    await asyncio.sleep(0)
    return events / (time.process_time() - begun)
