"""Where a key stands in a TOML file: the line that a person has to look at.

Why it exists: the parser of the standard library says what a file holds and not where. This reads
headers and keys only, so what stands inside a value of several lines may mislead it by some lines,
never about the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from triage.policy.toml_text import TomlError, toml_table

_HEADER: Final = re.compile(r"^\s*(\[\[?[^\]]*\]\]?)\s*(#.*)?$")
_KEY: Final = re.compile(r"^\s*([^#=\[][^=]*?)\s*=")

Path = tuple[str, ...]


class TomlLines:
    """The lines of one text, read once however many keys are asked for."""

    def __init__(self, text: str) -> None:
        self._first: dict[Path, int] = {}
        for number, found in _keys(text):
            self._first.setdefault(found, number)

    def of(self, path: Sequence[str | int]) -> int | None:
        """Return the line, counted from 1, of a key or of the nearest table around it; or None."""
        wanted = tuple(map(str, path))
        around = (wanted[:length] for length in range(len(wanted), 0, -1))
        return next((self._first[near] for near in around if near in self._first), None)


def _keys(text: str) -> Iterator[tuple[int, Path]]:
    """Yield each header and key with its line and its whole path."""
    table: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if (header := _HEADER.match(line)) is not None:
            table = _path(f"{header[1]}\n")
            yield number, table
        elif (key := _KEY.match(line)) is not None:
            yield number, (*table, *_path(f"{key[1]} = 0\n"))


def _path(fragment: str) -> Path:
    """Return the names that one header or key is made of, as the parser reads them."""
    try:
        value: object = toml_table(fragment)
    except TomlError:
        return ()
    names: list[str] = []
    while isinstance(value, dict | list) and value:
        if isinstance(value, list):
            value = value[0]
            continue
        name, value = next(iter(value.items()))
        names.append(name)
    return tuple(names)
