"""TOML as text that anybody may have written: what it holds, or one error that quotes nothing.

Why it exists: the parser of the standard library ends a wrong text with whatever its innards raise
(a number of many digits is a ValueError, deep nesting a RecursionError), and a key of very many
parts keeps it busy for hours. Whoever reads a file meets one error instead. Pure.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

MAX_KEY_PARTS: Final = 64
"""How many parts a dotted key, or the name of a table, may have."""

LARGEST: Final = 2**64
"""No value of ours is a larger number; thousands of digits cannot even be written as text."""

_PART: Final = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')[ \t]*"""
_LONG_KEY: Final = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}\.[ \t]*){{{MAX_KEY_PARTS}}}")
_LONG_NUMBER: Final = re.compile(r"[0-9_]{1000}")
_PLACE: Final = re.compile(r"\(at (line (\d+)[a-z0-9 ,]*|end of document)\)$")


class TomlError(ValueError):
    """A text that is not TOML, or that asks too much of a reader.

    Attributes:
        line: where it goes wrong, counted from 1; 0 if that is not known.
        place: the same in words, such as ``line 3, column 7``; empty if it is not known.
    """

    def __init__(self, place: str = "", line: int = 0) -> None:
        super().__init__("is not TOML")
        self.place = place
        self.line = line


def toml_table(text: str) -> dict[str, Any]:
    """Return what a text holds.

    Raises:
        TomlError: it is not TOML, or a key in it has more than `MAX_KEY_PARTS` parts.
    """
    if (key := _LONG_KEY.search(text)) is not None:
        raise _error_at(text, key.start())
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.search(str(error))
        raise TomlError(*((found[1], int(found[2] or 0)) if found else ())) from None
    except ValueError:
        number = _LONG_NUMBER.search(text)
        raise (_error_at(text, number.start()) if number else TomlError()) from None
    except RecursionError:
        raise TomlError from None


def _error_at(text: str, start: int) -> TomlError:
    line = text.count("\n", 0, start) + 1
    return TomlError(f"line {line}", line)
