"""What a check of `triage doctor` found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One row.

    Attributes:
        check: what was looked at.
        level: how bad it is.
        detail: what was found; never a secret.
        advice: what to do; empty when there is nothing to do.
        is_service: whether it is about something that must answer over a wire.
    """

    check: str
    level: Level
    detail: str
    advice: str = ""
    is_service: bool = False

    def lines(self) -> list[str]:
        """Return the row for people."""
        row = f"{self.level.value:<6}{self.check:<12}{self.detail}"
        return [row, f"{'':<18}-> {self.advice}"] if self.advice else [row]

    def to_json(self) -> dict[str, str]:
        """Return the row for programs."""
        return {
            "check": self.check,
            "status": self.level.value,
            "detail": self.detail,
            "advice": self.advice,
        }
