"""When two logins name the same person: once for taking a right away, once for giving one."""

from __future__ import annotations

import unicodedata
from string import ascii_lowercase, ascii_uppercase
from typing import Final

_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
"""Letters and marks that show nothing: fillers, joiners and variation selectors."""
_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def exact(login: str) -> str:
    """Return a login as it must be to give somebody a right: no letter but a to z has two cases.

    `folded` takes more for the same (the Kelvin sign for a k), which only ever takes a right away.
    """
    return login.strip().removeprefix("@").translate(_LOWER)


def folded(login: str) -> str:
    """Return a login in the form in which it takes a right away.

    They are compared without case, width, blanks, what nobody sees and a leading ``@``: they hold
    none of these.
    """
    plain = "".join(filter(_is_seen, unicodedata.normalize("NFKC", login)))
    return unicodedata.normalize("NFKC", plain).lstrip("@").casefold()


def is_visible(name: str) -> bool:
    """Whether a name has a character that people can see."""
    return any(map(_is_seen, name))


def _is_seen(character: str) -> bool:
    """Whether it leaves a mark: no blank, no control, no format character."""
    return not (
        character.isspace()
        or character in _BLANK
        or unicodedata.category(character) in {"Cc", "Cf"}
    )
