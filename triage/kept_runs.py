"""Keeps the runs that a worker used last, and has the SDK forget the others in time.

Why it exists: where the SDK's own cache (temporalio 1.35.0) is full, what comes for a run that is
not in it waits for a place, and of several tasks for one such run some are lost: each takes one of
the worker's slots with it, until the worker takes no task any more. Two people who look at the same
run are enough. So that cache gets more places than it needs, and this keeps it from filling up.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Final

from temporalio.worker import Worker

HEADROOM: Final = 200
"""Places of the SDK's cache beyond those that are kept: twice the tasks that it takes at once."""
QUIET_SECONDS: Final = 2.0
"""So long nobody has used a run that is let go of, while places are left: of several questions that
are on their way to a run the SDK loses some when it forgets it."""


@dataclass(frozen=True, slots=True)
class _Use:
    at: float
    is_busy: bool


class KeptRuns:
    """The runs of one worker, those first that were used longest ago.

    Attributes:
        limit: how many are kept that do nothing at the moment.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._last: OrderedDict[str, _Use] = OrderedDict()
        self._leaving: set[str] = set()
        self._worker: Worker | None = None
        # Runs are used by the threads of the worker's workflow tasks.
        self._lock = Lock()

    def attach(self, worker: Worker) -> Worker:
        """Say whose runs these are."""
        self._worker = worker
        return worker

    def used(self, run_id: str, *, is_busy: bool) -> None:
        """Note that a run did something, and let go of what nobody used for longest.

        Args:
            run_id: of the execution.
            is_busy: whether it is in the middle of its workflow task; then it stays.
        """
        with self._lock:
            self._last[run_id] = _Use(monotonic(), is_busy)
            self._last.move_to_end(run_id)
            leaving = self._surplus()
            self._leaving.update(leaving)
        for gone in leaving:
            self._forget(gone)

    def gone(self, run_id: str) -> None:
        """Note that the SDK has forgotten a run."""
        with self._lock:
            self._last.pop(run_id, None)
            self._leaving.discard(run_id)

    def _surplus(self) -> list[str]:
        """Return who is to leave: those that are idle, and quiet as long as there is room."""
        count = len(self._last) - len(self._leaving) - self.limit
        since = monotonic() - (QUIET_SECONDS if count < HEADROOM // 2 else 0)
        found: list[str] = []
        for run_id, use in self._last.items():
            if len(found) >= count or use.at > since:
                break
            if not use.is_busy and run_id not in self._leaving:
                found.append(run_id)
        return found

    def _forget(self, run_id: str) -> None:
        # The SDK has no public name for it: tests/workflow/test_kept_runs.py holds it to this one.
        bridge = None if self._worker is None else self._worker._bridge_worker  # noqa: SLF001 - see above
        if bridge is not None:
            bridge.request_workflow_eviction(run_id)
