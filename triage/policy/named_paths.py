"""Which paths an issue names: those it says were changed, and those that its visible text holds.

Why it exists: a model chooses what it looks up, so a true rule about another path can be made to
say who owns an issue. Only a path that the issue names speaks for it. Pure; the text is untrusted,
and each pass over it is linear.

A path is whole only between signs that cannot go on with it. Those are listed here: what is not,
such as a slash of another script or a letter that does not show, makes it a part of something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from triage.contracts.base import MAX_NAME_CHARS
from triage.contracts.request import TriageRequest
from triage.policy.visible_text import visible_text

MAX_MENTIONED: Final = 20

_GAP: Final = r" \t\r\n\xa0\u3000\u3001\u3002\uff0c\uff1a\uff1b\uff01\uff1f"
"""Spaces, ends of lines, and the wide punctuation that is written without a space."""
_QUOTE: Final = r"\"'`\u2018\u2019\u201c\u201d\u201e\xab\xbb\u300c\u300d\u300e\u300f"
_OPENING: Final = rf"{_QUOTE}(\[{{<|\uff08\u3010\u300a"
_CLOSING: Final = rf"{_QUOTE})\]}}>|\uff09\u3011\u300b"
_MARK: Final = r".,;:!?\u2026"
_UNSPACED: Final = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Letters of scripts that put no space around what is quoted."""

_REACH: Final = 8
"""How far to look back from a path: further than the longest match of what may stand there, so that
no match begins before it, where a text's start is an end of a line."""
_BEFORE: Final = re.compile(
    rf"(?:[{_GAP}][{_OPENING}]{{0,4}}"
    rf"|[^/\\][=,:;(\[{{|{_UNSPACED}][{_QUOTE}]{{1,3}})"
    r"(?:\./|/)?\Z"
)
_ENDING: Final = rf"[{_MARK}]{{0,3}}[{_CLOSING}]{{0,4}}[{_MARK}]{{0,3}}(?:[{_GAP}]|\Z)"
_PLACE: Final = r":[0-9]{1,7}(?:[:-][0-9]{1,7})?|#L[0-9]{1,7}(?:-L?[0-9]{1,7})?|\([0-9, ]{1,20}\)"
_AFTER: Final = re.compile(
    rf"(?:{_ENDING}"
    rf"|(?:{_PLACE})(?:{_ENDING}|[{_CLOSING}]{{0,4}}:)"
    r"|::[A-Za-z_]"
    rf"|[{_QUOTE}]?['\u2019]s{_ENDING}"
    rf"|[{_CLOSING}]{{1,4}}(?:[,;:=](?![/\\])|[{_UNSPACED}])"
    rf"|[{_QUOTE}][)\]}}]{{1,3}}\.[A-Za-z_])"
)

_PATH: Final = re.compile(
    r"(?<![\w./:@\\-])/?(?:(?:[\w.-]{1,64}/){1,12}(?:[\w.-]{0,64}[\w-])?|"
    r"[\w-]{1,64}\.[A-Za-z][A-Za-z0-9]{0,5}\b)"
)
_SUFFIX: Final = re.compile(r".*\.[A-Za-z][A-Za-z0-9]*")
_SPOKEN: Final = re.compile(rf"[\w.@][^{_GAP}{_QUOTE}\\<>|*?]*(?<![{_MARK}])")
"""What running text can name: spaces and quotes would make several words one path."""


@dataclass(frozen=True)
class NamedPaths:
    """The paths that one issue names.

    Attributes:
        changed: what it says was changed.
        title: all of which is seen.
        body: of which what a reader sees counts; it is parsed when that is first wanted.
    """

    changed: frozenset[str]
    title: str = field(repr=False)
    body: str = field(repr=False)

    @classmethod
    def of(cls, title: str, body: str, changed_paths: Iterable[str]) -> NamedPaths:
        """Take them from an issue's fields."""
        return cls(frozenset(map(_plain, changed_paths)), title, body)

    @classmethod
    def of_request(cls, request: TriageRequest) -> NamedPaths:
        """Take them from a request."""
        return cls.of(request.title, request.body, request.changed_paths)

    def __contains__(self, path: object) -> bool:
        """Whether the issue names exactly this path, from the repository's root.

        In running text a word is no path: what has neither a slash nor a suffix is named only
        where it was changed, and so is one with a space. A part of a longer path, or of an
        address, is not that path.
        """
        if not isinstance(path, str) or not (wanted := _plain(path)):
            return False
        return wanted in self.changed or (_is_path(wanted) and self._mentions(wanted))

    def _mentions(self, path: str) -> bool:
        at = -1
        while (at := self._text.find(path, at + 1)) >= 0:
            if _is_whole(self._text, at, at + len(path)):
                return True
        return False

    @cached_property
    def _text(self) -> str:
        return f"{self.title}\n{visible_text(self.body)}"


def mentioned_paths(title: str, body: str) -> tuple[str, ...]:
    """Return the path-like words that a reader sees, in order, at most `MAX_MENTIONED` of them."""
    found: dict[str, None] = {}
    for path in _path_words(f"{title}\n{visible_text(body)}"):
        found[path] = None
        if len(found) == MAX_MENTIONED:
            break
    return tuple(found)


def _path_words(text: str) -> Iterator[str]:
    for match in _PATH.finditer(text):
        path = _plain(match.group())
        is_one = len(path) <= MAX_NAME_CHARS and path == _plain(path) and _is_path(path)
        if is_one and _is_whole(text, *match.span()):
            yield path


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether what stands there is not a part of something longer."""
    before = f"\n\n{text[max(0, start - _REACH) : start]}"
    return _BEFORE.search(before) is not None and _AFTER.match(text, end) is not None


def _plain(path: str) -> str:
    return path.removeprefix("./").removeprefix("/")


def _is_path(path: str) -> bool:
    """Whether running text can name it."""
    is_one = "/" in path.rstrip("/") or _SUFFIX.fullmatch(path) is not None
    return is_one and _SPOKEN.fullmatch(path) is not None
