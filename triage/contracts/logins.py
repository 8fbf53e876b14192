"""When two logins name the same person: once for taking a right away, once for giving one."""

from __future__ import annotations

import unicodedata
from string import ascii_lowercase, ascii_uppercase
from typing import Final

_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def exact(login: str) -> str:
    """Return a login as it must be to give somebody a right: no letter but a to z has two cases.

    `folded` takes more for the same (the Kelvin sign for a k), which only ever takes a right away.
    """
    return login.strip().removeprefix("@").translate(_LOWER)


def folded(login: str) -> str:
    """Return a login in the form in which it takes a right away.

    They are compared without case, width, blanks and a leading ``@``: they hold none of these.
    """
    plain = unicodedata.normalize("NFKC", login)
    return "".join(plain.split()).lstrip("@").casefold()
