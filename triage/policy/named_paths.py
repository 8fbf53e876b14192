"""Which paths an issue names: those it says were changed, and those that its visible text holds.

Why it exists: a model chooses what it looks up, so a true rule about another path can be made to
say who owns an issue. Only a path that the issue names speaks for it. Pure; the text is untrusted,
and each pass over it is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from triage.contracts.base import MAX_NAME_CHARS
from triage.contracts.request import TriageRequest

MAX_MENTIONED: Final = 20
_PATH: Final = re.compile(
    r"(?<![\w./:@\\-])(?:[\w.-]{1,64}/){1,12}[\w.-]{0,64}[\w-]|"
    r"(?<![\w./:@\\-])[\w-]{1,64}\.[A-Za-z][A-Za-z0-9]{0,5}\b"
)
_SUFFIX: Final = re.compile(r".*\.[A-Za-z][A-Za-z0-9]*")


@dataclass(frozen=True, slots=True)
class NamedPaths:
    """The paths that one issue names.

    Attributes:
        changed: what it says was changed.
        text: its title and what a reader sees of its body.
    """

    changed: frozenset[str]
    text: str = field(repr=False)

    @classmethod
    def of(cls, title: str, body: str, changed_paths: Iterable[str]) -> NamedPaths:
        """Take them from an issue's fields."""
        return cls(frozenset(map(_plain, changed_paths)), f"{title}\n{visible(body)}")

    @classmethod
    def of_request(cls, request: TriageRequest) -> NamedPaths:
        """Take them from a request."""
        return cls.of(request.title, request.body, request.changed_paths)

    def __contains__(self, path: object) -> bool:
        """Whether the issue names exactly this path, from the repository's root.

        In running text a word is no path: what has neither a slash nor a suffix is named only
        where it was changed. A part of a longer path, or of an address, is not that path.
        """
        if not isinstance(path, str) or not (wanted := _plain(path)):
            return False
        return wanted in self.changed or (_is_path(wanted) and self._mentions(wanted))

    def _mentions(self, path: str) -> bool:
        whole = rf"(?<![\w./\\:@+~-])(?:\./|/)?{re.escape(path)}(?![\w/\\+~-]|\.\w)"
        return path in self.text and re.search(whole, self.text) is not None


def mentioned_paths(text: str) -> tuple[str, ...]:
    """Return the path-like words of a text, in order, at most `MAX_MENTIONED` of them."""
    found: dict[str, None] = {}
    for match in _PATH.finditer(text):
        path = _plain(match.group())
        if path and len(path) <= MAX_NAME_CHARS:
            found[path] = None
        if len(found) == MAX_MENTIONED:
            break
    return tuple(found)


def visible(body: str) -> str:
    """Return a body without its comments; one that is not closed hides the rest."""
    shown: list[str] = []
    position = 0
    while (start := body.find("<!--", position)) >= 0:
        shown.append(body[position:start])
        end = body.find("-->", start + 4)
        if end < 0:
            return " ".join(shown)
        position = end + 3
    shown.append(body[position:])
    return " ".join(shown)


def _plain(path: str) -> str:
    return path.removeprefix("./").removeprefix("/")


def _is_path(path: str) -> bool:
    return "/" in path.rstrip("/") or _SUFFIX.fullmatch(path) is not None
