"""A worker process that now and then kills or freezes itself between two steps of a write.

Why it exists: what strikes a process from outside hardly ever falls between two lines that matter.
So this wraps what `worker.main` runs: the ledger and the tracker by their methods, activities by an
interceptor. Production code knows nothing of it. Whoever started it lets it go on again.

Usage: ``python -m tests.soak.ambushes ADDRESS SEED CHANCE FOLDER``, with the tracker's address.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest import mock

from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    Worker,
)

import worker
from tests.fakes.http_client import Step
from tests.fakes.http_tracker import HttpTracker
from tests.fakes.wiring import writes_through_http
from triage.policy.tools import BUILTIN_TOOLS, ToolRegistry
from triage.storage.ledger import Ledger

CALM: Final = "calm"
"""The file whose existence ends all ambushes."""
STRUCK: Final = "ambushes.txt"
"""The file that tells of each."""
HTTP_SECONDS: Final = 1.5
"""The deadline of one method of the tracker; a write may take two seconds."""

_PATIENT_MS: Final = 2_000
_FROZEN_SHARE: Final = 0.35
_MOVES: Final = (
    "reserve",
    "dispatch",
    "still_holds",
    "settle",
    "mark_unknown",
    "reconcile",
    "release",
    "cancel",
)


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What a worker is told.

    Attributes:
        tracker: the address of its far end.
        seed: of its ambushes.
        chance: of one at each place that it passes.
        folder: where it looks for `CALM` and writes `STRUCK`.
    """

    tracker: str
    seed: int
    chance: float
    folder: Path


class Ambush:
    """Decides at each place that the process passes."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._random = Random(orders.seed)  # noqa: S311 - a test repeats it

    def passes(self, place: str, *, may_freeze: bool = True) -> None:
        """Stop the process here, or not."""
        strikes = self._random.random() < self._orders.chance
        freezes = self._random.random() < _FROZEN_SHARE and may_freeze
        if not strikes or (self._orders.folder / CALM).exists():
            return
        self._tell("frozen" if freezes else "killed", place)
        os.kill(os.getpid(), signal.SIGSTOP if freezes else signal.SIGKILL)

    def at_step(self, step: Step) -> None:
        """Stop the process inside the request that writes.

        Right before the first byte it is not frozen: whatever wakes up there still sends, and
        nothing can prevent that.
        """
        self.passes(f"request {step}", may_freeze=step is not Step.SENDING)

    def _tell(self, what: str, place: str) -> None:
        with (self._orders.folder / STRUCK).open("a", encoding="utf-8") as file:
            file.write(f"{what} {place}\n")


class _Bodies(Interceptor):
    """Passes before and after the body of every activity."""

    def __init__(self, ambush: Ambush) -> None:
        self._ambush = ambush

    def intercept_activity(
        self,
        next: ActivityInboundInterceptor,  # noqa: A002 - the SDK names it
    ) -> ActivityInboundInterceptor:
        return _Body(next, self._ambush)


class _Body(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, ambush: Ambush) -> None:
        super().__init__(inner)
        self._ambush = ambush

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401 - the SDK's own
        name = activity.info().activity_type
        self._ambush.passes(f"before {name}")
        result = await super().execute_activity(input)
        self._ambush.passes(f"after {name}")
        return result


@contextmanager
def ambushed(orders: Orders) -> Iterator[None]:
    """Lay ambushes for every worker that this process runs meanwhile, and name its far end."""
    ambush = Ambush(orders)
    far_end = writes_through_http(
        orders.tracker, deadline_seconds=HTTP_SECONDS, on_step=ambush.at_step
    )
    with far_end, ExitStack() as patches:
        patches.enter_context(mock.patch.object(worker, "BUILTIN_TOOLS", patient_tools()))
        patches.enter_context(mock.patch.object(worker, "Worker", partial(_watched, ambush)))
        for owner, names in ((Ledger, _MOVES), (HttpTracker, ("add_labels",))):
            for name in names:
                wrapped = _wrapped(getattr(owner, name), name, ambush)
                patches.enter_context(mock.patch.object(owner, name, wrapped))
        yield


def _watched(ambush: Ambush, *args: Any, **options: Any) -> Worker:  # noqa: ANN401 - the SDK's own
    options["interceptors"] = [*options.get("interceptors", ()), _Bodies(ambush)]
    return Worker(*args, **options)


def _wrapped(
    original: Callable[..., Awaitable[Any]], name: str, ambush: Ambush
) -> Callable[..., Awaitable[Any]]:
    async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the method takes
        ambush.passes(f"before {name}")
        result = await original(*args, **kwargs)
        ambush.passes(f"after {name}")
        return result

    return call


def patient_tools() -> ToolRegistry:
    """Return the tools with time to spare: a busy machine is not the fault under test."""
    return ToolRegistry(*(replace(tool, timeout_ms=_PATIENT_MS) for tool in BUILTIN_TOOLS))


def serve(orders: Orders) -> int:
    """Run a worker with the settings in the environment until it is stopped."""
    with ambushed(orders):
        return worker.main([])


def main() -> int:
    """Run a worker as the arguments say."""
    address, seed, chance, folder = sys.argv[1:5]
    return serve(Orders(tracker=address, seed=int(seed), chance=float(chance), folder=Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
