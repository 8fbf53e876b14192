"""CPU time and memory of whole process trees, and of the machine, as the Linux kernel counts them.

Why it exists: wall clock is noise on a shared machine. What a worker and its server used does not
depend on who else wanted the processor, or only a little.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
# Positions in /proc/PID/stat, counted from the field after the program's name.
_PARENT: Final = 1
_CPU: Final = slice(11, 15)
_RESIDENT: Final = 21
_IDLE: Final = slice(3, 5)
_WITHOUT_GUESTS: Final = 8


@dataclass(frozen=True, slots=True)
class Process:
    """One line of ``/proc/PID/stat``.

    Attributes:
        parent: the id of the process that it belongs to.
        cpu_seconds: what it used, and what children used that it has already waited for.
        resident_bytes: its memory that is in RAM, shared pages included.
    """

    parent: int
    cpu_seconds: float
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tree of processes used up to now, and holds now."""

    cpu_seconds: float
    resident_bytes: int


def parse_process(stat: str) -> Process:
    """Read the text of ``/proc/PID/stat``; a program's name may hold blanks and brackets."""
    fields = stat.rpartition(")")[2].split()
    return Process(
        parent=int(fields[_PARENT]),
        cpu_seconds=sum(map(int, fields[_CPU])) / _TICKS,
        resident_bytes=int(fields[_RESIDENT]) * _PAGE_BYTES,
    )


def parse_machine(stat: str) -> tuple[float, float]:
    """Read the text of ``/proc/stat``: seconds that all processors were busy, and that there were.

    A guest's time is already in its host process's.
    """
    times = [int(field) for field in stat.split("\n", 1)[0].split()[1:][:_WITHOUT_GUESTS]]
    total = sum(times)
    return (total - sum(times[_IDLE])) / _TICKS, total / _TICKS


def machine() -> tuple[float, float]:
    """Return the seconds that all processors were busy since the start, and that there were."""
    return parse_machine((_PROC / "stat").read_text(encoding="ascii"))


def processes() -> dict[int, Process]:
    """Return every process that can be seen, by its id."""
    found = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            # It may end at any moment.
            with suppress(OSError):
                found[int(folder.name)] = parse_process((folder / "stat").read_text("utf-8"))
    return found


@dataclass(frozen=True, slots=True)
class Opened:
    """How many threads and open files some processes have; a connection is a file, too."""

    threads: int = 0
    files: int = 0

    @classmethod
    def by(cls, pids: Iterable[int]) -> Opened:
        """Count what these processes have, without their children."""
        folders = [_PROC / str(pid) for pid in pids]
        return cls(*(sum(len([*(f / n).iterdir()]) for f in folders) for n in ("task", "fd")))


class Neighbours:
    """Counts, from its making on, what of the machine this process and its own did not use."""

    def __init__(self) -> None:
        self._busy, self._all = machine()
        self._ours = _of_this_tree()

    def share(self) -> float:
        """Return the share of the machine's time that somebody else used up to now."""
        ours, (busy, total) = _of_this_tree() - self._ours, machine()
        return max(0.0, busy - self._busy - ours) / max(total - self._all, 1e-9)


def _of_this_tree() -> float:
    return tree_usage([os.getpid()], processes()).cpu_seconds


def tree_usage(roots: Iterable[int], seen: Mapping[int, Process]) -> Usage:
    """Return what the processes `roots` and all that descend from them used."""
    children: dict[int, list[int]] = {}
    for pid, process in seen.items():
        children.setdefault(process.parent, []).append(pid)
    cpu, resident = 0.0, 0
    todo = [pid for pid in roots if pid in seen]
    while todo:
        pid = todo.pop()
        cpu += seen[pid].cpu_seconds
        resident += seen[pid].resident_bytes
        todo += children.get(pid, [])
    return Usage(cpu, resident)
