"""How an issue is typed: ``acme/shop#101``, or ``local#7``."""

from __future__ import annotations

import re
from typing import Final

from triage.cli.errors import InputError

_REPOSITORY: Final = r"[\w.-]+(?:/[\w.-]+)?"
_NUMBER: Final = r"[\w.-]+"
REFERENCE: Final = re.compile(f"(?P<repository>{_REPOSITORY})#(?P<number>{_NUMBER})", re.ASCII)
_PARTS: Final = {
    "repository": (re.compile(_REPOSITORY, re.ASCII), "OWNER/NAME or NAME"),
    "number": (re.compile(_NUMBER, re.ASCII), "one word"),
}


def named(text: str) -> tuple[str, str]:
    """Return the repository and the number that are typed.

    Raises:
        InputError: this is not how an issue is named.
    """
    found = REFERENCE.fullmatch(text)
    if found is None:
        raise InputError("an issue is named REPOSITORY#NUMBER, such as acme/shop#101")
    return found["repository"], found["number"]


def check_part(what: str, text: str) -> None:
    """See that an issue with this `repository` or `number` can be named by every command.

    Raises:
        InputError: it cannot.
    """
    pattern, form = _PARTS[what]
    if pattern.fullmatch(text) is None:
        raise InputError(
            f"no command could name an issue with this {what}",
            f"a {what} is {form}, of ASCII letters, digits, '.', '_' and '-'",
        )
