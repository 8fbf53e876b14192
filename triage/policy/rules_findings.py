"""What is wrong with a rules file, or odd about it, in the form that people are told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

MAX_FINDINGS: Final = 50
"""How many findings are told of at once; a last one says how many more there are."""


@dataclass(frozen=True, slots=True, order=True)
class RuleFinding:
    """Something about a rules file that a person should know.

    Attributes:
        line: counted from 1; 0 if it concerns the file as a whole.
        where: the table and key, such as ``labels.bug``.
        message: what is wrong.
        hint: what to do.
    """

    line: int
    where: str
    message: str
    hint: str

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        return f"{place}{self.where}: {self.message}; {self.hint}"


class RulesFileError(Exception):
    """A rules file that cannot be used; nothing of it takes effect.

    Attributes:
        findings: its mistakes.
        warnings: what else is odd about it.
    """

    def __init__(self, *findings: RuleFinding, warnings: Iterable[RuleFinding] = ()) -> None:
        self.findings, self.warnings = bounded(findings), bounded(tuple(warnings))
        super().__init__("\n".join(map(str, self.findings)))


def bounded(findings: Sequence[RuleFinding]) -> tuple[RuleFinding, ...]:
    """Return no more than a person reads; a failure in a history is no place for thousands."""
    if (more := len(findings) - MAX_FINDINGS) <= 0:
        return tuple(findings)
    last = RuleFinding(0, "the file", f"has {more:,} more", "begin with these")
    return (*findings[:MAX_FINDINGS], last)
