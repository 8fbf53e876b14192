"""Where a key stands in a TOML file: the line that a person has to look at.

Why it exists: the parser of the standard library says what a file holds and not where. This reads
headers and keys only, so what stands inside a value of several lines may mislead it by some lines,
never about the value.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Final

_HEADER: Final = re.compile(r"^\s*(\[\[?[^\]]*\]\]?)\s*(#.*)?$")
_KEY: Final = re.compile(r"^\s*([^#=\[][^=]*?)\s*=")

Path = tuple[str, ...]


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """Return the line, counted from 1, of a key or of the nearest table around it; else None."""
    wanted = tuple(str(part) for part in path)
    best, line = 0, None
    for number, found in _keys(text):
        common = _common(found, wanted)
        if common == len(found) and common > best:
            best, line = common, number
    return line


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
        value: object = tomllib.loads(fragment)
    except tomllib.TOMLDecodeError:
        return ()
    names: list[str] = []
    while isinstance(value, dict | list) and value:
        if isinstance(value, list):
            value = value[0]
            continue
        name, value = next(iter(value.items()))
        names.append(name)
    return tuple(names)


def _common(one: Path, other: Path) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
