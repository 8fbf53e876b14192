"""A database that is gone for a while: its file is locked, or its server lets nobody in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql
from sqlalchemy import make_url


class Outage:
    """Makes the database at a URL unusable, and usable again."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url)
        self._holder: sqlite3.Connection | None = None

    def begin(self) -> None:
        """From now on no transaction can write; on PostgreSQL none can even begin."""
        if self._url.get_backend_name() == "sqlite":
            self._holder = sqlite3.connect(str(self._url.database), isolation_level=None)
            self._holder.execute("BEGIN IMMEDIATE")
        else:
            self._allow_connections(allowed=False)

    def end(self) -> None:
        """Let everybody in again; ends nothing that never began."""
        if self._holder is not None:
            self._holder.close()
            self._holder = None
        elif self._url.get_backend_name() != "sqlite":
            self._allow_connections(allowed=True)

    def _allow_connections(self, *, allowed: bool) -> None:
        name = str(self._url.database)
        server = self._url.set(drivername="postgresql", database="postgres")
        where = server.render_as_string(hide_password=False)
        with psycopg.connect(where, autocommit=True) as admin:
            change = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
            admin.execute(change.format(sql.Identifier(name), sql.Literal(allowed)))
            if not allowed:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                    (name,),
                )


@contextmanager
def possible_outage(url: str) -> Iterator[Outage]:
    """Give an outage that is over when the body ends, whatever happened in it."""
    outage = Outage(url)
    try:
        yield outage
    finally:
        outage.end()
