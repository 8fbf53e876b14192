"""What a check of `triage doctor` found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from triage.cli.output import columns
from triage.cli.text import wrap


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
        head = f"{self.level.value:<6}{self.check:<12}"
        first, *others = wrap(self.detail, columns() - len(head))
        advice = wrap(f"-> {self.advice}", columns() - len(head)) if self.advice else []
        indent = " " * len(head)
        return [f"{head}{first}", *(f"{indent}{line}" for line in [*others, *advice])]

    def to_json(self) -> dict[str, str]:
        """Return the row for programs."""
        return {
            "check": self.check,
            "status": self.level.value,
            "detail": self.detail,
            "advice": self.advice,
        }
