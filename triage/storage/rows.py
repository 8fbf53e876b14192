"""The two statements that SQLite and PostgreSQL spell differently, and a row as a mapping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Executable, Result, Table, literal_column
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection


async def insert_first(
    connection: AsyncConnection, table: Table, values: Mapping[str, object]
) -> bool:
    """Insert a row unless one of its unique keys is taken; one statement decides.

    Returns:
        Whether this call inserted it. If not, the row that was first can be read at once, also
        when it came from a transaction that ran at the same time.
    """
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = insert(table).values(**values).on_conflict_do_nothing()
    # Not rowcount, which the library does not keep for an insert on PostgreSQL.
    inserted: Result[Any] = await connection.execute(statement.returning(literal_column("1")))
    return inserted.first() is not None


async def first_row(connection: AsyncConnection, statement: Executable) -> RowMapping | None:
    """Run a query and return its first row as a mapping, or None."""
    return (await connection.execute(statement)).mappings().first()
