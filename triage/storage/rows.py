"""The two statements that SQLite and PostgreSQL spell differently, and a row as a mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import Executable, Result, Table, literal_column
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import RowMapping

from triage.storage.connections import AsyncConnection


async def insert_first(
    connection: AsyncConnection, table: Table, values: Mapping[str, object]
) -> bool:
    """Insert a row unless one of its unique keys is taken; one statement decides.

    Returns:
        Whether this call inserted it. If not, the row that was first can be read at once, also
        when it came from a transaction that ran at the same time.
    """
    statement = _insert(table, is_sqlite=connection.dialect.name == "sqlite")
    inserted: Result[Any] = await connection.execute(statement, dict(values))
    return inserted.first() is not None


@cache
def _insert(table: Table, *, is_sqlite: bool) -> Executable:
    """Return the statement for a table, built once: each run inserts a dozen rows."""
    insert = sqlite.insert if is_sqlite else _postgresql_insert()
    # Not rowcount, which the library does not keep for an insert on PostgreSQL.
    return insert(table).on_conflict_do_nothing().returning(literal_column("1"))


def _postgresql_insert() -> Callable[[Table], Any]:
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 - loaded with the first connection

    return postgresql.insert


async def first_row(
    connection: AsyncConnection, statement: Executable, values: Mapping[str, object] | None = None
) -> RowMapping | None:
    """Run a query with `values` and return its first row as a mapping, or None."""
    return (await connection.execute(statement, values)).mappings().first()
