"""What it takes to start a command: `triage --help` and `triage doctor`, beside an empty Python."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.stats import Spread

EMPTY: Final = "python -c pass"
TIMES: Final = 7


@dataclass(frozen=True, slots=True)
class ColdStart:
    """One command, started several times.

    Attributes:
        command: as one types it.
        seconds: by the wall clock.
        cpu_seconds: of the command and what it started.
    """

    command: str
    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]

    @property
    def wall(self) -> Spread:
        """By the wall clock; on a machine with other work it is mostly that."""
        return Spread.of(self.seconds)

    @property
    def cpu(self) -> Spread:
        """Processor time, which is what it would take on an idle machine."""
        return Spread.of(self.cpu_seconds)


async def measure_cold_starts(connection: Mapping[str, str], folder: Path) -> list[ColdStart]:
    """Start each command several times, in turn, with a server that answers."""
    triage = str(Path(sysconfig.get_path("scripts")) / "triage")
    commands: dict[str, Sequence[str]] = {
        EMPTY: (sys.executable, "-c", "pass"),
        "triage --help": (triage, "--help"),
        "triage doctor": (triage, "doctor"),
    }
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8", **connection}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(TIMES):
        for name, command in commands.items():
            # In a thread, so that Ctrl-C is heard in between.
            found[name].append(await asyncio.to_thread(_once, command, environment, folder))
    return [
        ColdStart(name, tuple(wall for wall, _ in times), tuple(cpu for _, cpu in times))
        for name, times in found.items()
    ]


def _once(
    command: Sequence[str], environment: Mapping[str, str], folder: Path
) -> tuple[float, float]:
    """Run a command to its end, whatever it answers, and return its wall and CPU time."""
    begun = time.monotonic()
    child = subprocess.Popen(  # noqa: S603 - our own commands
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - begun, used.ru_utime + used.ru_stime
