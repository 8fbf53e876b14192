"""A production worker that stops itself at one named place, for tests only.

Why it exists: "killed between any two steps" is only a promise if the kill falls exactly between
two steps. So this wraps what `worker.main` runs, from outside: activities by an interceptor, the
ledger and the tracker by their methods. Production code knows nothing of it.

Places are "before NAME N" and "after NAME N" for the body of an activity as it runs for the Nth
time in this process, "command NAME N" for the workflow task that asks for it, and "after reserve",
"after dispatch", "before send", "after send" and "after settle" inside the write.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest import mock

from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    StartActivityInput,
    Worker,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import ActivityHandle

import worker
from triage.storage.ledger import Ledger
from triage.trackers.local import LocalTracker

KILL: Final = "kill"
FREEZE: Final = "freeze"
OVER: Final = ".over"
"""The suffix of a second mark: what was frozen has ended."""


class Places(Interceptor):
    """Stops this process at one place, the first time that it is reached."""

    def __init__(self, place: str, action: str, mark: Path) -> None:
        self._place = place
        self._signal = signal.SIGKILL if action == KILL else signal.SIGSTOP
        self._mark = mark
        self._counts: Counter[str] = Counter()

    def reach(self, place: str) -> None:
        """Stop here if this is the place; the mark on disk says that it was reached."""
        if place == self._place and not self._mark.exists():
            self._mark.touch()
            os.kill(os.getpid(), self._signal)

    def leave(self) -> None:
        """Say on disk that a body ended after this process was frozen and went on."""
        if self._mark.exists():
            self._mark.with_suffix(OVER).touch()

    def count(self, name: str) -> str:
        """Return a name with how often it came up."""
        self._counts[name] += 1
        return f"{name} {self._counts[name]}"

    def intercept_activity(
        self,
        next: ActivityInboundInterceptor,  # noqa: A002 - the SDK names it
    ) -> ActivityInboundInterceptor:
        """Wrap the body of every activity."""
        return _Body(next, self)

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 - the SDK names it
    ) -> type[WorkflowInboundInterceptor]:
        """Wrap what workflow tasks ask for."""
        places = self

        class Outbound(WorkflowOutboundInterceptor):
            def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:  # noqa: A002 - the SDK's own
                places.reach(f"command {places.count(f'start {input.activity}')[6:]}")
                return super().start_activity(input)

        class Inbound(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                super().init(Outbound(outbound))

        return Inbound


class _Body(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, places: Places) -> None:
        super().__init__(inner)
        self._places = places

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401 - the SDK's own
        step = self._places.count(activity.info().activity_type)
        self._places.reach(f"before {step}")
        try:
            result = await super().execute_activity(input)
            self._places.reach(f"after {step}")
        finally:
            self._places.leave()
        return result


@contextmanager
def installed(places: Places) -> Iterator[None]:
    """Wrap the worker, the ledger and the tracker of this process."""
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(worker, "Worker", partial(_watched, places)))
        for owner, method, before, after in (
            (Ledger, "reserve", None, "after reserve"),
            (Ledger, "dispatch", None, "after dispatch"),
            (LocalTracker, "add_labels", "before send", "after send"),
            (Ledger, "settle", None, "after settle"),
        ):
            wrapped = _wrapped(getattr(owner, method), places, before, after)
            patches.enter_context(mock.patch.object(owner, method, wrapped))
        yield


def _watched(places: Places, *args: Any, **options: Any) -> Worker:  # noqa: ANN401 - the SDK's own
    # A frozen process still holds its open polls, and the server gives it tasks: here one at most.
    options["max_concurrent_activity_task_polls"] = 1
    options["interceptors"] = [*options.get("interceptors", ()), places]
    return Worker(*args, **options)


def _wrapped(
    original: Callable[..., Awaitable[Any]], places: Places, before: str | None, after: str
) -> Callable[..., Awaitable[Any]]:
    async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the method takes
        if before:
            places.reach(before)
        result = await original(*args, **kwargs)
        places.reach(after)
        return result

    return call


def main() -> int:
    """Run a worker that stops at the place given as ``PLACE ACTION MARK``."""
    place, action, mark = sys.argv[1:4]
    with installed(Places(place, action, Path(mark))):
        return worker.main([])


if __name__ == "__main__":
    sys.exit(main())
