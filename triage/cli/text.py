"""Makes text that strangers wrote safe to look at.

Why it exists: an issue title, a label or an approver's name may hold escape sequences that drive
the terminal, or direction marks that reorder what a reviewer reads. Everything that a command
prints for people goes through `visible`, so nothing can be shown other than as it is.
"""

from __future__ import annotations

import re
import textwrap
from typing import Final

_HIDDEN_LETTERS: Final = frozenset(
    # Letters and marks that have no width although their category says otherwise.
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
)
_ONE_WORD: Final = re.compile(r"[!-~]+")
_NARROW: Final = 0x0530
"""Latin, Greek and Cyrillic stand below it; above it, terminals differ on a character's width."""

_SUPPLEMENT: Final = range(0xE0100, 0xE01F0)
"""Variation selectors that can carry hidden bytes; those of everyday emoji stay."""


def visible(text: str) -> str:
    r"""Return `text` with everything that cannot be seen written as ``\u{…}``.

    That is control characters (line breaks and tabs too), escape, direction and zero-width marks,
    every space but the common one, and whatever Unicode has not assigned.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{{{ord(c):x}}}" if _is_hidden(c) else c for c in text)


def shorten(text: str, limit: int) -> str:
    """Cut `text` to `limit` characters, marking the cut with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def exact(text: str) -> str:
    """Return a name as it is if it is one word of plain signs, else in quotes; it is never cut."""
    return text if _ONE_WORD.fullmatch(text) else quoted(text)


def quoted(text: str) -> str:
    """Return `text` in quotes that nothing in it can end."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def fold(text: str, width: int) -> list[str]:
    """Cut a line into pieces that no terminal of `width` columns breaks, at blanks if it can.

    A terminal that broke a line itself would show the rest at its left edge, where our own words
    stand. The pieces are visible text; together they hold everything but the blanks at the cuts.
    """
    shown, pieces, start = visible(text), [], 0
    while (end := _fitting(shown, start, width)) < len(shown):
        cut = shown.rfind(" ", start + 1, end + 1)
        pieces.append(shown[start : cut if cut > 0 else end])
        start = cut + 1 if cut > 0 else end
    return [*pieces, shown[start:]]


def wrap(text: str, width: int) -> list[str]:
    """Cut a sentence of ours into lines of at most `width` columns; no word of it is broken."""
    return textwrap.wrap(visible(text), width, break_long_words=False, break_on_hyphens=False) or [
        ""
    ]


def _fitting(text: str, start: int, width: int) -> int:
    """Return where what fits into `width` columns ends: at least one character is taken."""
    taken = 0
    for position in range(start, len(text)):
        taken += 1 if ord(text[position]) < _NARROW else 2
        if taken > width:
            return max(position, start + 1)
    return len(text)


def _is_hidden(character: str) -> bool:
    return (
        not character.isprintable() or character in _HIDDEN_LETTERS or ord(character) in _SUPPLEMENT
    )
