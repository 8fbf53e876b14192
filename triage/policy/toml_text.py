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
_OPEN: Final = "a text is not closed"
_DIGITS: Final = "a number has too many digits"
_LONG_NUMBER: Final = re.compile(r"[0-9_]{1000}")
# By the first words of the parser's message. What follows them may quote the text, so what is told
# is these words of ours, and of a message that is not known nothing.
_REASONS: Final = {
    "Cannot declare": "a table is declared twice",
    "Cannot mutate immutable namespace": "an inline table or array cannot be added to",
    "Cannot overwrite a value": "a name is given twice",
    "Cannot redefine namespace": "a table stands there already under this name",
    "Duplicate inline table key": "a name is given twice in an inline table",
    "Escaped character is not": "an escape names no character",
    "Expected '=' after a key": "there is no '=' after a key",
    "Expected ']' at": "there is no ']' at the end of a table's name",
    "Expected ']]' at": "there is no ']]' at the end of a table's name",
    'Expected "': _OPEN,
    "Expected newline": "something follows a value on its line",
    "Found invalid character '\\n'": _OPEN,
    "Found invalid character": "a character may not stand there",
    "Illegal character '\\n'": _OPEN,
    "Illegal character": "a character has to be escaped",
    "Invalid date or datetime": "there is no such date or time",
    "Invalid hex value": "an escape needs hexadecimal digits",
    "Invalid initial character for a key part": "a key is missing, or does not begin as one",
    "Invalid statement": "neither a key nor a table begins so",
    "Invalid value": "a value is missing, or is text without quotes",
    "Unclosed array": "an array is not closed, or lacks a comma",
    "Unclosed inline table": "an inline table is not closed, or lacks a comma",
    "Unescaped '\\' in a string": "a backslash has to be doubled",
    "Unterminated string": _OPEN,
}
_PLACE: Final = re.compile(r"\(at (line (\d+)[a-z0-9 ,]*|end of document)\)$")


class TomlError(ValueError):
    """A text that is not TOML, or that asks too much of a reader.

    Attributes:
        line: where it goes wrong, counted from 1; 0 if that is not known.
        place: the same in words, such as ``line 3, column 7``; empty if it is not known.
        reason: why, in words that quote nothing; empty if it is not known.
    """

    def __init__(self, place: str = "", line: int = 0, reason: str = "") -> None:
        super().__init__("is not TOML")
        self.place = place
        self.line = line
        self.reason = reason

    def told(self, *, with_line: bool = True) -> str:
        """Return what is to be said of the file: that it is not TOML, where, and why.

        Args:
            with_line: whether to say the place also where the line is known.
        """
        where = f" at {self.place}" if self.place and (with_line or not self.line) else ""
        return f"is not TOML{where}{f' ({self.reason})' if self.reason else ''}"


def toml_table(text: str) -> dict[str, Any]:
    """Return what a text holds.

    Raises:
        TomlError: it is not TOML, or a key in it has more than `MAX_KEY_PARTS` parts.
    """
    if (key := _LONG_KEY.search(text)) is not None:
        raise _error_at(text, key.start(), f"a key has more than {MAX_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _error_in(str(error)) from None
    except ValueError:
        number = _LONG_NUMBER.search(text)
        raise (_error_at(text, number.start(), _DIGITS) if number else TomlError()) from None
    except RecursionError:
        raise TomlError(reason="it is nested too deep") from None


def _error_in(message: str) -> TomlError:
    """Take from the parser's message what cannot hold anything of the text."""
    found = _PLACE.search(message)
    place, line = (found[1], int(found[2] or 0)) if found else ("", 0)
    reason = next((told for words, told in _REASONS.items() if message.startswith(words)), "")
    return TomlError(place, line, reason)


def _error_at(text: str, start: int, reason: str) -> TomlError:
    line = text.count("\n", 0, start) + 1
    return TomlError(f"line {line}", line, reason)
