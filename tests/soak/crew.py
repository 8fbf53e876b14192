"""Two worker processes that are killed and frozen, and always come back while they should.

Each is forked from a process that has imported everything, so that a new one is there in a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random
from typing import Final

from tests.soak import ambushes
from tests.soak.ambushes import CALM, Orders
from triage.embedded import WORKER_READY

_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([ambushes.__name__])
_PR_SET_PDEATHSIG: Final = 1
_LOOK_SECONDS: Final = 0.2
_READY_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 20.0
_STATE: Final = 0
"""Where the state stands in /proc/PID/stat, behind the name in parentheses."""


class Process:
    """One worker process; its output goes to `log`."""

    def __init__(self, environment: Mapping[str, str], log: Path, orders: Orders) -> None:
        self.log = log
        self._process: ForkServerProcess = _CONTEXT.Process(
            target=_serve, args=(dict(environment), log, orders), daemon=True
        )
        self._process.start()

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    @property
    def is_ready(self) -> bool:
        """Whether it lives and has said that it polls."""
        if not self._process.is_alive() or not self.log.exists():
            return False
        return WORKER_READY in self.log.read_text(encoding="utf-8")

    @property
    def is_frozen(self) -> bool:
        """Whether it is stopped and waits for a signal to go on."""
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[_STATE] == "T"

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal, or None."""
        return self._process.exitcode

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it is still there."""
        if self._process.pid is not None and self._process.is_alive():
            os.kill(self._process.pid, number)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a crew works.

    Attributes:
        environment: of its processes.
        orders: what each is told; the seed differs.
        freeze_seconds: how long a frozen one stays so, from and to.
    """

    environment: Mapping[str, str]
    orders: Orders
    freeze_seconds: tuple[float, float]


class Worker:
    """One of the crew: a process, and the next one when it has died."""

    def __init__(self, name: str, place: Place, seed: int) -> None:
        self.name = name
        self._place = place
        self._random = Random(f"{seed} {name}")  # noqa: S311 - a test repeats it
        self._ended = asyncio.Event()
        self._number = 0
        self.process: Process | None = None
        self.statuses: Counter[int] = Counter()

    async def live(self) -> None:
        """Keep a process going until `end`; it lets frozen ones go on after a while."""
        while not self._ended.is_set():
            self.process = self._born()
            await self._watch(self.process)
            if self.process.status is not None:
                self.statuses[self.process.status] += 1

    async def end(self) -> int | None:
        """Ask the process to end in order, and return its exit status."""
        self._ended.set()
        process = self.process
        if process is None:
            return None
        process.send(signal.SIGCONT)
        process.send(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await _until(lambda: not process.is_alive, _STOP_SECONDS)
        process.send(signal.SIGKILL)
        return process.status

    @property
    def is_ready(self) -> bool:
        """Whether its process polls."""
        return self.process is not None and self.process.is_ready

    def strike(self, number: signal.Signals) -> bool:
        """Kill or freeze the process, unless it is not up yet or frozen already."""
        process = self.process
        if process is None or not process.is_ready or process.is_frozen:
            return False
        process.send(number)
        return True

    def _born(self) -> Process:
        self._number += 1
        orders = replace(self._place.orders, seed=self._random.getrandbits(64))
        log = orders.folder / f"worker-{self.name}-{self._number}.log"
        return Process(self._place.environment, log, orders)

    async def _watch(self, process: Process) -> None:
        """Return once a process has ended, having woken it up whenever it was frozen."""
        while process.is_alive:
            await asyncio.sleep(_LOOK_SECONDS)
            if process.is_frozen:
                await asyncio.sleep(self._random.uniform(*self._place.freeze_seconds))
                process.send(signal.SIGCONT)


class Crew:
    """All workers of one soak."""

    def __init__(self, place: Place, seed: int, size: int = 2) -> None:
        self._place = place
        self.workers = [Worker(str(number), place, seed) for number in range(1, size + 1)]

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Let the crew work while the body runs; none of them outlives it."""
        lives = [asyncio.create_task(worker.live()) for worker in self.workers]
        try:
            await self.ready()
            yield
        finally:
            for worker in self.workers:
                if worker.process is not None:
                    worker.process.send(signal.SIGKILL)
            for life in lives:
                life.cancel()
            await asyncio.gather(*lives, return_exceptions=True)

    async def ready(self) -> None:
        """Return once all of them poll."""
        await _until(lambda: all(worker.is_ready for worker in self.workers), _READY_SECONDS)

    async def calm(self) -> None:
        """Let nobody strike any more, wake up who is frozen, and wait until all poll."""
        (self._place.orders.folder / CALM).touch()
        for worker in self.workers:
            if worker.process is not None:
                worker.process.send(signal.SIGCONT)
        await self.ready()

    async def end(self) -> list[int | None]:
        """End all of them in order, and return their exit statuses."""
        return await asyncio.gather(*(worker.end() for worker in self.workers))


async def _until(check: Callable[[], bool], seconds: float) -> None:
    """Wait for what another process does."""
    async with asyncio.timeout(seconds):
        while True:
            if check():
                return
            await asyncio.sleep(_LOOK_SECONDS)


def _serve(environment: dict[str, str], log: Path, orders: Orders) -> None:
    """Become a worker process."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(output, number)
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(ambushes.serve(orders))
