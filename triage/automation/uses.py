"""What is found about labels in a repository: which of them its automation listens to, and where.

Why it exists: a label that starts or gates automation is more than a description, so no model may
propose it. What cannot be made out counts as listening to every label.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Match(StrEnum):
    """Which labels a use is about."""

    EXACT = "exact"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    PART = "part"
    ANY = "any"


class Weight(StrEnum):
    """What comes of a label."""

    TRIGGERS = "triggers"
    """Something runs, or does not, because of it."""

    SORTS = "sorts"
    """It only decides under which heading something is listed."""


@dataclass(frozen=True, slots=True, order=True)
class LabelUse:
    """One place where automation looks at labels.

    Attributes:
        file: its path in the repository.
        line: counted from 1.
        match: which labels it is about.
        text: the label, or the part of its name; empty for any label.
        why: how it looks at them, in words of ours.
        weight: what comes of it.
    """

    file: str
    line: int
    match: Match
    text: str
    why: str
    weight: Weight = Weight.TRIGGERS

    def covers(self, label: str) -> bool:
        """Whether it is about this label; case does not count, as on GitHub."""
        name, text = label.casefold(), self.text.casefold()
        match self.match:
            case Match.EXACT:
                return name == text
            case Match.PREFIX:
                return name.startswith(text)
            case Match.SUFFIX:
                return name.endswith(text)
            case Match.PART:
                return text in name
            case Match.ANY:
                return True


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A file, or a part of it, that could not be made out.

    Attributes:
        file: its path in the repository.
        line: counted from 1; 0 if it concerns the file as a whole.
        message: what is wrong; quotes nothing of it.
    """

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        """Say it in one line."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.message}"
