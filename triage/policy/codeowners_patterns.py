"""Reads one CODEOWNERS pattern into steps, one for each name of a path.

Why it exists: patterns come from strangers. A regular expression made of `*a*a*a*a*a*b` can take
hours, so there is none here: a name is compared with a glob sign by sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from triage.policy.codeowners_findings import Code


class PatternError(ValueError):
    """A pattern that GitHub does not take, or that matches nothing."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.value)
        self.code = code


ONE: Final = "one of any"
MANY: Final = "many of any"
"""Wildcards among signs, which are single characters; a sign behind a backslash is itself."""

_WILDCARDS: Final = {"?": ONE, "*": MANY}
_WILD: Final = frozenset(_WILDCARDS.values())


class Tail(Enum):
    """What of a path a pattern matches, once its names have matched."""

    HERE = "here"
    BENEATH = "beneath"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Glob:
    """A name with wildcards."""

    signs: tuple[str, ...]

    def literals(self) -> list[str]:
        """Return the pieces between wildcards, in order; the last one ends the name."""
        pieces = [""]
        for sign in self.signs:
            if sign in _WILD:
                pieces.append("")
            else:
                pieces[-1] += sign
        return pieces

    def matches(self, name: str) -> bool:
        """Tell whether the glob matches a whole name, in at most len(signs) * len(name) steps.

        After a mismatch only the last `*` takes one sign more: what an earlier one could take
        instead, the last can take as well.
        """
        signs, count = self.signs, len(self.signs)
        at = position = 0
        star, taken = -1, 0
        while position < len(name):
            sign = signs[at] if at < count else None
            if sign == MANY:
                star, taken, at = at, position, at + 1
            elif sign == ONE or (sign is not None and sign == name[position]):
                at, position = at + 1, position + 1
            elif star >= 0:
                taken += 1
                at, position = star + 1, taken
            else:
                return False
        return bool(name) and all(sign == MANY for sign in signs[at:])


STAR: Final = Glob((MANY,))
Step = str | Glob | None
"""One name of a pattern; None is ``**``, any number of names."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern, read."""

    steps: tuple[Step, ...]
    tail: Tail


def read_pattern(text: str) -> Pattern:
    """Read a pattern by gitignore's rules, and GitHub's where those differ.

    Raises:
        PatternError: GitHub does not take it, or it matches no path.
    """
    if text.startswith("!"):
        raise PatternError(Code.NEGATION)
    if text.startswith("\\#"):
        raise PatternError(Code.ESCAPED_HASH)
    names = _split(list(_signs(text)))
    is_folder = len(names) > 1 and not names[-1]
    is_anchored = len(names) > 1 + is_folder
    steps = [_step(name) for name in names[(not names[0]) : len(names) - is_folder]]
    if not steps or any(step in {"", ".", ".."} for step in steps):
        raise PatternError(Code.NEVER_MATCHES)
    return _arranged(steps if is_anchored else [None, *steps], is_folder=is_folder)


def _signs(text: str) -> Iterator[str]:
    rest = iter(text)
    for sign in rest:
        if sign == "\\":
            escaped = next(rest, "/")
            if escaped == "/":
                raise PatternError(Code.BAD_ESCAPE)
            yield escaped
        else:
            yield _WILDCARDS.get(sign, sign)


def _split(signs: Sequence[str]) -> list[list[str]]:
    names: list[list[str]] = [[]]
    for sign in signs:
        if sign == "/":
            names.append([])
        else:
            names[-1].append(sign)
    return names


def _step(name: list[str]) -> Step:
    if name == [MANY, MANY]:
        return None
    if _WILD.isdisjoint(name):
        return "".join(name)
    return Glob(
        tuple(
            sign
            for before, sign in zip([None, *name], name, strict=False)
            if not (before == sign == MANY)
        )
    )


def _arranged(steps: list[Step], *, is_folder: bool) -> Pattern:
    """Return the one form of all patterns that mean the same."""
    joined = [step for at, step in enumerate(steps) if step or at == 0 or steps[at - 1]]
    if joined == [None, STAR]:
        # A single * is everything, or with a / behind it everything in a folder.
        return Pattern((None, STAR), Tail.BENEATH) if is_folder else Pattern((None,), Tail.BOTH)
    if joined == [None]:
        return _arranged([None, STAR], is_folder=is_folder)
    if joined[-1] is None:
        return Pattern(tuple(joined[:-1]), Tail.BENEATH)
    if is_folder:
        return Pattern(tuple(joined), Tail.BENEATH)
    # GitHub differs from gitignore here: docs/* is not what lies deeper than docs.
    return Pattern(tuple(joined), Tail.HERE if joined[-1] == STAR else Tail.BOTH)
