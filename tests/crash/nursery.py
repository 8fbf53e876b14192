"""Processes that start fast, since one process has imported everything for all of them.

Why it exists: the crash matrix starts some hundred workers. Each is a process of its own that runs
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
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final
from unittest import mock

import worker
from tests.crash import paused_worker
from tests.crash.places import WIRE, Pause, Stopper
from tests.fakes.wiring import writes_through_http
from triage import faults
from triage.cli import main as command_line
from triage.embedded import WORKER_READY
from triage.policy.tools import BUILTIN_TOOLS, ToolRegistry

_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [paused_worker.__name__, "triage.cli.starting", "triage.cli.serving"]
)
_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a process does.

    Attributes:
        environment: its whole environment.
        log: where its output goes.
        tracker: the address of the tracker that it writes to.
        pause: where it stops itself, if anywhere.
        command: the arguments of a `triage` command; without, it is a worker.
    """

    environment: Mapping[str, str]
    log: Path
    tracker: str
    pause: Pause | None = None
    command: tuple[str, ...] = ()


class Process:
    """One process, under way."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._process: ForkServerProcess = _CONTEXT.Process(target=_run, args=(job,), daemon=True)
        self._process.start()

    async def ready(self, word: str = WORKER_READY) -> bool:
        """Wait until it says that it does its work; False if it is no more."""
        await until(lambda: self._says(word) or not self._process.is_alive())
        return self._says(word)

    def _says(self, word: str) -> bool:
        log = self._job.log
        return log.exists() and word in log.read_text(encoding="utf-8")

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
        """Wait until it has frozen itself, every thread of it."""
        assert self._job.pause is not None
        await until(self._job.pause.is_reached)
        await until(self._is_stopped)

    def _is_stopped(self) -> bool:
        state = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8")
        return state.rpartition(")")[2].split()[0] == "T"

    async def thaw(self) -> None:
        """Let it go on, and wait until what was frozen has ended."""
        assert self._job.pause is not None
        self.go_on()
        await until(self._job.pause.is_over)

    def go_on(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    async def stop(self) -> int:
        """Ask it to end in order, with what it has taken on, and return its exit status."""
        self._process.terminate()
        return await self.ended()

    async def kill(self) -> None:
        """Kill it, frozen or not, and wait until it is gone."""
        self._process.kill()
        await self.ended()


async def until(check: Callable[[], bool]) -> None:
    """Wait for what another process does to the file system."""
    while True:
        if check():
            return
        await asyncio.sleep(0.1)


def _run(job: Job) -> None:
    """Become the process that a job is for."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    output = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in (1, 2):
        os.dup2(output, number)
    os.environ.clear()
    os.environ.update(job.environment)
    stopper = Stopper(job.pause) if job.pause else None
    if job.command:
        if stopper:
            faults.arm(stopper.reach)
        sys.argv = ["triage", *job.command]
        command_line.main()
    sys.exit(_serve(job.tracker, stopper))


def _serve(tracker: str, stopper: Stopper | None) -> int:
    """Be a worker, on a machine that may be slow, with a tracker behind real HTTP."""
    with ExitStack() as changes:
        changes.enter_context(mock.patch.object(worker, "BUILTIN_TOOLS", patient_tools()))
        wire: dict[str, Callable[[str], None]] = {}
        if stopper:
            changes.enter_context(paused_worker.armed(stopper))
            reach = stopper.reach
            wire["on_step"] = lambda step: reach(f"{WIRE}.{step}")
        if tracker:
            changes.enter_context(writes_through_http(tracker, **wire))
        return worker.main([])


def patient_tools() -> ToolRegistry:
    """Return the tools with ten times their time: a busy machine is not the fault under test."""
    return ToolRegistry(*(replace(tool, timeout_ms=tool.timeout_ms * 10) for tool in BUILTIN_TOOLS))
