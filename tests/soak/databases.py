"""The databases that soaks run on, and what can be done to each while it is in use."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, Protocol

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from tests.postgres_server import running_server

LOCKED_SECONDS: Final = 2.5


class Database(Protocol):
    """One that a soak runs on."""

    @property
    def url(self) -> str:
        """Where the store is."""
        ...

    async def disturb(self, random: Random) -> str:
        """Do it some harm, and return what it was."""
        ...


@dataclass(frozen=True)
class SqliteFile:
    """A file that another program locks now and then."""

    path: Path

    @property
    def url(self) -> str:
        """Where the store is."""
        return f"sqlite:///{self.path}"

    async def disturb(self, random: Random) -> str:
        """Keep the file locked for a while."""
        await asyncio.to_thread(self._lock, random.uniform(0.2, LOCKED_SECONDS))
        return "database locked"

    def _lock(self, seconds: float) -> None:
        connection = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")
        finally:
            connection.close()


@dataclass(frozen=True)
class PostgresDatabase:
    """A database whose connections an administrator ends now and then."""

    server: str
    name: str

    @property
    def url(self) -> str:
        """Where the store is."""
        return make_url(self.server).set(database=self.name).render_as_string(hide_password=False)

    async def disturb(self, random: Random) -> str:
        """End one connection, some or all of them."""
        async with await psycopg.AsyncConnection.connect(
            _plain(self.server), autocommit=True
        ) as connection:
            query = "SELECT pid FROM pg_stat_activity WHERE datname = %s ORDER BY pid"
            rows = await (await connection.execute(query, [self.name])).fetchall()
            count = random.choice((1, 1, 2, len(rows)))
            for (pid,) in random.sample(rows, min(count, len(rows))):
                await connection.execute("SELECT pg_terminate_backend(%s)", [pid])
        return "database connections ended"


@contextmanager
def postgres_database(name: str) -> Iterator[PostgresDatabase]:
    """Run a PostgreSQL server of our own with one empty database."""
    with running_server() as server:
        yield created(server, name)


def created(server: str, name: str) -> PostgresDatabase:
    """Create an empty database on a server that runs."""
    with psycopg.connect(_plain(server), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return PostgresDatabase(server, name)


def _plain(url: str) -> str:
    """Return the URL as the driver itself reads it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
