"""Values of a rules file that its parser takes and no rule means.

Why it exists: a date is no text, a number may be too long to be written again, and a name with a
character that does not show reads as another. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from unicodedata import category

from triage.policy.toml_text import LARGEST

Path = tuple[str | int, ...]

_UNSEEN: Final = frozenset({"Cc", "Zl", "Zp"})


def as_json(table: dict[str, Any]) -> str:
    """Return a table as JSON, in which what no rule can be is a number that is none.

    Raises:
        ValueError: it cannot be written.
        RecursionError: it is nested too deep.
    """
    return json.dumps(_plain(table))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, int) and abs(value) > LARGEST:
        return float("inf")
    # Dates and times: of the wrong type wherever they stand.
    return value if isinstance(value, str | int | float) else float("nan")


def unseen(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield where a name or a text holds a control character or a break of its own."""
    if isinstance(value, str) and _is_unseen(value):
        yield path
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from unseen(item, (*path, place))
    elif isinstance(value, dict):
        for name, item in value.items():
            if _is_unseen(name):
                yield (*path, name)
            yield from unseen(item, (*path, name))


def _is_unseen(text: str) -> bool:
    return not text.isprintable() and any(category(char) in _UNSEEN for char in text)


def alike(names: Iterable[str], fold: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield each name that stands for the same as one before it, with that one."""
    first: dict[str, str] = {}
    for name in names:
        if (known := fold(name)) in first:
            yield name, first[known]
        first.setdefault(known, name)
