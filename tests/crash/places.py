"""Places where a process may stop itself, and the hook that makes it do so.

A place is a fault point of `triage.faults`, or one of two kinds that only a test can see: the
workflow task that asks for an activity (``command``), and the bytes of the request that writes
(``wire``), whose client is the test's own.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from triage.faults import Point

COMMAND: Final = "command"
WIRE: Final = "wire"
OVER: Final = ".over"
"""The suffix of a second mark: what was frozen has ended."""

_ENDS: Final = frozenset({Point.ACTIVITY_END, Point.SWEEP_END, COMMAND})


class Action(StrEnum):
    """What a process does to itself."""

    KILL = "kill"
    FREEZE = "freeze"


@dataclass(frozen=True)
class Place:
    """A point, what it is about, and which of its turns; an empty subject stands for any."""

    point: str
    subject: str = ""
    turn: int = 1

    def __str__(self) -> str:
        turn = str(self.turn) if self.turn > 1 else ""
        return " ".join(part for part in (self.point, self.subject, turn) if part)


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Where a process stops itself, and how; `mark` on the disk says that it was there."""

    place: Place
    action: Action
    mark: Path

    def is_reached(self) -> bool:
        """Whether the process was there."""
        return self.mark.exists()

    def is_over(self) -> bool:
        """Whether what was frozen there has ended."""
        return self.mark.with_suffix(OVER).exists()


class Stopper:
    """A hook for `triage.faults.arm` that stops this process at one place, once."""

    def __init__(self, pause: Pause) -> None:
        self._pause = pause
        self._turns = 0

    def reach(self, point: str, subject: str = "") -> None:
        """Stop here if this is the place; once thawed, say when what was frozen has ended."""
        stopped = self._is_due(point, subject)
        if stopped:
            self._pause.mark.touch()
            kills = self._pause.action is Action.KILL
            os.kill(os.getpid(), signal.SIGKILL if kills else signal.SIGSTOP)
        if point in _ENDS and self._pause.is_reached():
            self._pause.mark.with_suffix(OVER).touch()

    def _is_due(self, point: str, subject: str) -> bool:
        place = self._pause.place
        if point != place.point or place.subject not in {"", subject}:
            return False
        self._turns += 1
        return self._turns == place.turn and not self._pause.is_reached()
