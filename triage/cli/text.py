"""Makes text that strangers wrote safe to look at.

Why it exists: an issue title, a label or an approver's name may hold escape sequences that drive
the terminal, or direction marks that reorder what a reviewer reads. Everything that a command
prints for people goes through `visible`, so nothing can be shown other than as it is.
"""

from __future__ import annotations

from typing import Final

_HIDDEN_LETTERS: Final = frozenset(
    # Letters and marks that have no width although their category says otherwise.
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
)
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


def _is_hidden(character: str) -> bool:
    return (
        not character.isprintable() or character in _HIDDEN_LETTERS or ord(character) in _SUPPLEMENT
    )
