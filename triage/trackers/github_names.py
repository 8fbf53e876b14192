"""What names an issue, a repository and a label on GitHub. Pure.

Why it exists: these names become parts of an address. Whatever is no such name is refused before
an address is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from triage.trackers.base import TrackerRefused, is_label

BAD_TARGET: Final = "bad_target"

_OWNER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,98}")
# A repository may be called .github; an address that ends in a dot or two is another one.
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,14}")
# An address ends its path at them: GitHub would see another request.
_NO_PATH: Final = frozenset({"", ".", ".."})


@dataclass(frozen=True)
class Place:
    """A repository, and an issue in it if it has a number."""

    owner: str
    name: str
    number: str = ""

    @property
    def variables(self) -> Mapping[str, str]:
        """What fills the templates of addresses."""
        number = {"number": self.number} if self.number else {}
        return {"owner": self.owner, "repo": self.name, **number}


def repository_place(repository: str) -> Place:
    """Return where ``owner/name`` is.

    Raises:
        TrackerRefused: it names no repository on GitHub (``bad_target``).
    """
    owner, separator, name = repository.partition("/")
    if not separator or not (_is_name(_OWNER, owner) and _is_name(_NAME, name)):
        raise TrackerRefused(BAD_TARGET, "a repository on GitHub is owner/name")
    return Place(owner, name)


def issue_place(repository: str, number: str) -> Place:
    """Return where an issue is.

    Raises:
        TrackerRefused: it names no issue on GitHub (``bad_target``).
    """
    place = repository_place(repository)
    if not _NUMBER.fullmatch(number):
        raise TrackerRefused(BAD_TARGET, "an issue on GitHub has a number")
    return Place(place.owner, place.name, number)


def is_label_name(name: str) -> bool:
    """Whether GitHub may have a label of this name, and an address can name it."""
    return is_label(name) and name.strip() not in _NO_PATH and _is_text(name)


def _is_name(form: re.Pattern[str], text: str) -> bool:
    return form.fullmatch(text) is not None and ".." not in text and text not in _NO_PATH


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
