"""How a story puts things: names, quotations, digests, times and counts.

Why it exists: a history is full of text that strangers wrote. A word of theirs stands bare only if
it can be nothing but one word; everything else stands in quotes with its own quotes escaped, so no
name or reason can pass for a sentence of ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

MAX_NAME_CHARS: Final = 80
MAX_QUOTE_CHARS: Final = 300
MAX_LISTED: Final = 20
SHORT_HEX: Final = 12

_ONE_WORD: Final = re.compile(r"[A-Za-z0-9_./:@#+*<>\[\]…-]+")
_DIGEST: Final = re.compile(rf"sha256:([0-9a-f]{{{SHORT_HEX}}})[0-9a-f]{{{64 - SHORT_HEX}}}")
_SECOND: Final = timedelta(seconds=1)
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def quoted(text: str, limit: int = MAX_QUOTE_CHARS) -> str:
    """Return `text` in double quotes, its own quotes and line breaks escaped, cut to `limit`."""
    return json.dumps(_cut(text, limit), ensure_ascii=False)


def named(text: str) -> str:
    """Return a name bare if it is one plain word, else in quotes; digests are shortened."""
    short = _cut(short_digest(text), MAX_NAME_CHARS)
    return short if _ONE_WORD.fullmatch(short) else quoted(short)


def listed(names: Iterable[str]) -> str:
    """Return names with commas between them, or ``none``; of many the first few."""
    return _joined([named(name) for name in names])


def labelled(labels: Iterable[str]) -> str:
    """Return labels, each in quotes since a label may hold commas and spaces, or ``none``."""
    return _joined([quoted(label, MAX_NAME_CHARS) for label in labels])


def short_digest(text: str) -> str:
    """Return `text` with each digest in it cut to twelve hex digits."""
    return _DIGEST.sub(r"sha256:\1", text)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 step`` or ``2 steps``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("ry") else f"{number} {noun}s"


def moment(when: datetime) -> str:
    """Return a time in UTC to the minute, such as ``2026-01-31 09:30 UTC``."""
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def span(length: timedelta) -> str:
    """Return a length of time in its two largest units, such as ``82 ms`` or ``3 h 4 min``."""
    length = max(length, timedelta())
    if length < _SECOND:
        return f"{length // timedelta(milliseconds=1)} ms"
    if length < timedelta(minutes=1):
        return f"{length / _SECOND:.1f} s".replace(".0 s", " s")
    rest, parts = length // _SECOND, []
    for unit, seconds in _UNITS:
        number, rest = divmod(rest, seconds)
        parts.append((number, unit))
    first = next(index for index, (number, _) in enumerate(parts) if number)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2] if number)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _joined(shown: list[str]) -> str:
    more = len(shown) - MAX_LISTED
    return ", ".join(shown[:MAX_LISTED] + ([f"{more} more"] if more > 0 else [])) or "none"
