"""Column types that mean the same thing on SQLite and on PostgreSQL.

Why it exists: the two differ where it hurts. PostgreSQL refuses NUL in text, neither driver takes
a lone surrogate, and SQLite has no time zones. Rows must come back exactly as they went in.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import DateTime, Dialect, Text
from sqlalchemy.types import TypeDecorator

# A backslash is escaped too, which is what makes the form reversible.
_TO_ESCAPE: Final = re.compile("[\\\\\x00\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\(\\|u[0-9a-f]{4})")


def escape_text(text: str) -> str:
    r"""Return `text` in the form in which it is stored: ``\\``, ``\u0000``, ``\ud800``.

    The form is reversible, and equal texts have equal forms, so it serves in keys and filters.
    """
    return _TO_ESCAPE.sub(_escape_one, text)


def unescape_text(stored: str) -> str:
    """Return the text that `escape_text` was given."""
    return _ESCAPED.sub(_unescape_one, stored)


def _escape_one(found: re.Match[str]) -> str:
    character = found.group()
    return "\\\\" if character == "\\" else f"\\u{ord(character):04x}"


def _unescape_one(found: re.Match[str]) -> str:
    code = found.group(1)
    return "\\" if code == "\\" else chr(int(code[1:], 16))


class ExactText(TypeDecorator[str]):
    """Any Python string, NUL and lone surrogates included, given back exactly."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        """Escape on the way in."""
        return None if value is None else escape_text(value)

    def process_result_value(self, value: str | None, _dialect: Dialect) -> str | None:
        """Undo it on the way out."""
        return None if value is None else unescape_text(value)


class UtcDateTime(TypeDecorator[datetime]):
    """An instant: an aware datetime, in UTC when it comes back, to the microsecond."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Bring to UTC; SQLite stores the naive form, whose text sorts as the instants do.

        Raises:
            ValueError: for a naive datetime, which names no instant.
        """
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored time needs a time zone")
        in_utc = value.astimezone(UTC)
        return in_utc.replace(tzinfo=None) if dialect.name == "sqlite" else in_utc

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Give back an aware datetime in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
