"""Worker processes that start fast, since one process has imported everything for all of them.

Why it exists: the crash matrix starts some forty workers. Each is a process of its own that runs
what ``python -m worker`` runs, and can be killed like one; only the imports are shared, by a fork
that happens before any thread exists.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Final
from unittest import mock

import worker
from tests.crash import paused_worker
from tests.crash.paused_worker import OVER
from triage.embedded import WORKER_READY
from triage.policy.tools import BUILTIN_TOOLS, ToolRegistry
from triage.trackers.base import LabelsAdded
from triage.trackers.local import LocalTracker

_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([paused_worker.__name__])
_PR_SET_PDEATHSIG: Final = 1

SENDS: Final = "sends.txt"
"""The file beside a worker's log that tells of every call that adds labels."""
SENT: Final = "sent"
COMMITTED: Final = "committed"


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Where a worker stops itself, and how; see `tests.crash.paused_worker`."""

    place: str
    action: str
    mark: Path

    def is_reached(self) -> bool:
        """Whether the worker was there."""
        return self.mark.exists()

    def is_over(self) -> bool:
        """Whether what was frozen there has ended."""
        return self.mark.with_suffix(OVER).exists()


class Process:
    """One worker process; its output goes to `log`."""

    def __init__(self, environment: Mapping[str, str], log: Path, pause: Pause | None) -> None:
        self._log = log
        self._pause = pause
        self._process: ForkServerProcess = _CONTEXT.Process(
            target=_serve, args=(dict(environment), log, pause), daemon=True
        )
        self._process.start()

    async def ready(self) -> None:
        """Wait until it says that it polls, or is no more."""
        await _until(lambda: self._says_ready() or not self._process.is_alive())

    def _says_ready(self) -> bool:
        return self._log.exists() and WORKER_READY in self._log.read_text(encoding="utf-8")

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process.pid is not None
        return self._process.pid

    async def ended(self) -> int:
        """Wait for the end and return the exit status, negative for a signal."""
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._process.sentinel, over.set)
        try:
            await over.wait()
        finally:
            loop.remove_reader(self._process.sentinel)
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode

    async def frozen(self) -> None:
        """Wait until it has frozen itself."""
        assert self._pause is not None
        await _until(self._pause.is_reached)

    async def thaw(self) -> None:
        """Let it go on, and wait until what was frozen has ended."""
        assert self._pause is not None
        os.kill(self.pid, signal.SIGCONT)
        await _until(self._pause.is_over)

    async def stop(self) -> int:
        """Ask it to end in order, with what it has taken on, and return its exit status."""
        self._process.terminate()
        return await self.ended()

    async def kill(self) -> None:
        """Kill it, frozen or not, and wait until it is gone."""
        self._process.kill()
        await self.ended()


async def _until(check: Callable[[], bool]) -> None:
    """Wait for what another process does to the file system."""
    while True:
        if check():
            return
        await asyncio.sleep(0.05)


def _serve(environment: dict[str, str], log: Path, pause: Pause | None) -> None:
    """Become a worker process."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in (1, 2):
        os.dup2(output, number)
    os.environ.clear()
    os.environ.update(environment)
    with (
        mock.patch.object(worker, "BUILTIN_TOOLS", patient_tools()),
        mock.patch.object(LocalTracker, "add_labels", _logged(log.parent / SENDS)),
    ):
        if pause is None:
            sys.exit(worker.main([]))
        sys.argv = ["paused_worker", pause.place, pause.action, str(pause.mark)]
        sys.exit(paused_worker.main())


def _logged(log: Path) -> Callable[..., Awaitable[LabelsAdded]]:
    """Return `add_labels` with a log of its own, since a repeated call would leave no event."""
    original = LocalTracker.add_labels

    async def add_labels(*args: Any, **kwargs: Any) -> LabelsAdded:  # noqa: ANN401 - as the original
        _append(log, SENT)
        added = await original(*args, **kwargs)
        _append(log, COMMITTED if added.added else "committed nothing")
        return added

    return add_labels


def _append(log: Path, line: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def patient_tools() -> ToolRegistry:
    """Return the tools with ten times their time: a busy machine is not the fault under test."""
    return ToolRegistry(*(replace(tool, timeout_ms=tool.timeout_ms * 10) for tool in BUILTIN_TOOLS))
