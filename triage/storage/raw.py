"""Reads rows that somebody may have edited by hand: no value is decoded before it was looked at.

Why it exists: SQLite keeps any value in any column, and PostgreSQL keeps times that Python does not
have. The ordinary way of reading raises on the first such value and hides every other row with it.
Here each value is read as what it is, and one that its column does not allow is `UNREADABLE`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Integer,
    LargeBinary,
    Select,
    Table,
    Text,
    case,
    func,
    select,
    type_coerce,
)

from triage.storage.columns import ExactText, UtcDateTime, unescape_text

_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}", re.ASCII)


class Unreadable(Enum):
    """The type of `UNREADABLE`."""

    UNREADABLE = "unreadable"


UNREADABLE: Final = Unreadable.UNREADABLE
"""Stands in a row for a value that its column does not allow."""


def select_raw(table: Table, *, sqlite: bool) -> Select[Any]:
    """Return a query of every column of `table`, for `decoded` to read; filter and order it."""
    shown = _on_sqlite if sqlite else _on_postgresql
    return select(*(shown(column).label(column.name) for column in table.columns))


def decoded(table: Table, row: Mapping[str, Any], *, sqlite: bool) -> dict[str, Any]:
    """Return a row of `select_raw` with the values that the ordinary way of reading gives.

    It raises nothing: what cannot be decoded is `UNREADABLE`.
    """
    read = _typed if sqlite else _as_it_is
    return {column.name: _value(column, read(row[column.name])) for column in table.columns}


def misfits(table: Table, row: Mapping[str, Any]) -> list[str]:
    """Return the columns of a row, read the ordinary way, whose values are of no type of theirs."""
    return [name for name, kinds in _kinds(table) if not isinstance(row[name], kinds)]


@cache
def _kinds(table: Table) -> tuple[tuple[str, tuple[type, ...]], ...]:
    """Return the types of each column's values, as the ordinary way of reading gives them."""
    return tuple(
        (c.name, (_read_as(c), *([NoneType] if c.nullable else []))) for c in table.columns
    )


def _read_as(column: Column[Any]) -> type:
    return datetime if isinstance(column.type, UtcDateTime) else _kind(column)


def _on_sqlite(column: Column[Any]) -> ColumnElement[Any]:
    # The bytes in hexadecimal: the driver raises on text that is no UTF-8.
    return func.typeof(column, type_=Text).concat(":").concat(func.hex(column, type_=Text))


def _on_postgresql(column: Column[Any]) -> ColumnElement[Any]:
    if isinstance(column.type, UtcDateTime):
        # Neither infinity nor a year before Christ gives the form that is read.
        in_utc = func.timezone("UTC", column)
        written = func.to_char(in_utc, "YYYY-MM-DD HH24:MI:SS.US BC", type_=Text)
        present = func.coalesce(func.replace(written, " AD", ""), "", type_=Text)
        return case((column.is_(None), None), else_=present)
    return type_coerce(column, Text) if isinstance(column.type, ExactText) else column


def _typed(shown: str) -> object:
    kind, _, digits = shown.partition(":")
    content = bytes.fromhex(digits)
    if kind == "null":
        return None
    if kind == "integer":
        return int(content)
    if kind == "text":
        try:
            return content.decode()
        except UnicodeDecodeError:
            return UNREADABLE
    return content if kind == "blob" else UNREADABLE


def _as_it_is(value: object) -> object:
    return value


def _value(column: Column[Any], value: object) -> object:
    if value is None:
        return None if column.nullable else UNREADABLE
    if isinstance(column.type, UtcDateTime):
        return _instant(value)
    if isinstance(column.type, ExactText):
        return unescape_text(value) if isinstance(value, str) else UNREADABLE
    if isinstance(column.type, Boolean):
        return bool(value) if value in {0, 1} else UNREADABLE
    return value if isinstance(value, _kind(column)) else UNREADABLE


def _kind(column: Column[Any]) -> type:
    if isinstance(column.type, Integer | BigInteger | Boolean):
        return int
    return bytes if isinstance(column.type, LargeBinary) else str


def _instant(value: object) -> object:
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        return UNREADABLE
    try:
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    except ValueError:
        return UNREADABLE
