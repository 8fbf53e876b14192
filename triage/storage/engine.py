"""The one way to the database: short transactions that mean the same on SQLite and PostgreSQL.

Why it exists: two workers may meet on one operation, so "read, then write" has to be one step. On
SQLite that takes ``BEGIN IMMEDIATE`` (a deferred transaction fails half-way, whatever the busy
timeout); on PostgreSQL READ COMMITTED with row locks. No transaction may span a network call.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from sqlalchemy import URL, Label, func, literal_column, select, text
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import SQLAlchemyError

from triage.storage.address import Address, parse_address
from triage.storage.columns import UtcDateTime
from triage.storage.connections import AsyncConnection
from triage.storage.direct import DirectEngine
from triage.storage.errors import StorageMisconfigured, StorageUnavailable, translate
from triage.storage.sqlite import LOOKING, WRITING, prepare_file

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

DEFAULT_TRANSACTION_SECONDS: Final = 40.0
CLOSE_SECONDS: Final = 5.0
# Of a transaction's time, what SQLite may spend waiting: its own, clearer error comes first. A
# thread that waits cannot be called back, so a cancelled task waits with it.
_SQLITE_BUSY_SHARE: Final = 0.75
_POSTGRESQL_LIMITS: Final = text(
    "SET LOCAL lock_timeout = '30s'; "
    "SET LOCAL statement_timeout = '30s'; "
    # A process that was stopped inside a transaction must not lock the others out for ever.
    "SET LOCAL idle_in_transaction_session_timeout = '30s'"
)
# Not now(), which is when the transaction began: it may have waited for a lock since.
_POSTGRESQL_CLOCK: Final = func.clock_timestamp(type_=UtcDateTime()).label("database_now")
_SQLITE_TICK: Final = 1_000
# SQLite counts milliseconds; the zeros make them microseconds.
_SQLITE_CLOCK: Final = func.strftime("%Y-%m-%d %H:%M:%f000", "now", type_=UtcDateTime()).label(
    "database_now"
)
_POSTGRESQL_CONNECT: Final[dict[str, object]] = {
    "connect_timeout": 5,
    "tcp_user_timeout": 15_000,
    # Named prepared statements break behind a pooler in transaction mode.
    "prepare_threshold": None,
}

_Begin = Callable[[], AbstractAsyncContextManager[AsyncConnection]]

_log = logging.getLogger(__name__)


class Store:
    """An open database. One event loop at a time may use it.

    Every method raises `StorageError` and nothing else of the database's.
    """

    def __init__(self, address: Address, transaction_seconds: float, offset: timedelta) -> None:
        self.address = address
        self._offset = offset
        self._transaction_seconds = transaction_seconds
        self._engine: DirectEngine | AsyncEngine
        if address.is_sqlite:
            direct = DirectEngine(address, transaction_seconds * _SQLITE_BUSY_SHARE)
            self._engine = direct
            self._begin_reading: _Begin = direct.begin
            self._begin_writing: _Begin = partial(direct.begin, WRITING)
            self._begin_looking: _Begin = partial(direct.begin, LOOKING)
        else:
            engine = _postgresql_engine(address.url)
            self._engine = engine
            self._begin_reading = engine.execution_options(isolation_level="AUTOCOMMIT").begin
            self._begin_writing = engine.begin
            self._begin_looking = engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            ).begin
        # SQLite has one writer; waiting here is fair, waiting inside SQLite is by chance.
        self._turn = asyncio.Lock() if address.is_sqlite else nullcontext()

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        transaction_seconds: float = DEFAULT_TRANSACTION_SECONDS,
        opening_seconds: float | None = None,
        clock_offset: timedelta = timedelta(0),
    ) -> Self:
        """Open the database at `url` and see that it answers.

        Args:
            url: ``sqlite:///path`` or ``postgresql+psycopg://user:password@host/name``.
            transaction_seconds: how long one transaction may take, waiting included.
            opening_seconds: how long this may take, others that open or leave the file included; as
                long as a transaction if it is not given.
            clock_offset: added to the database's time; only tests have a use for it.

        Raises:
            StorageMisconfigured: a bad URL, no rights, no such database, a damaged file.
            StorageUnavailable: no answer, or not now.
        """
        address = parse_address(url)
        if address.path is not None:
            prepare_file(address.path)
        store = cls(address, transaction_seconds, clock_offset)
        try:
            await store._check(opening_seconds or transaction_seconds)
        except BaseException:
            await store.close()
            raise
        return store

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite; otherwise it is PostgreSQL."""
        return self.address.is_sqlite

    async def close(self) -> None:
        """Close every connection, in bounded time; the store cannot be used afterwards.

        A connection that will not close is left to the end of the process, which it cannot delay.
        """
        closing = asyncio.ensure_future(self._engine.dispose())
        # A timeout around it would not do: the driver waits on in its own clean-up.
        await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
        if not closing.done():
            closing.cancel()
            _log.warning("a connection to the database did not close in time")
        elif (error := closing.exception()) is not None:
            raise (
                translate(error, self.address.shown)
                if isinstance(error, SQLAlchemyError)
                else error
            )

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """One short transaction that may write: committed at the end, or nothing of it is kept.

        Raises:
            StorageUnavailable: also when the commit itself was cut, and then its outcome is open.
        """
        async with self._guarded(), self._turn, self._begin_writing() as connection:
            if not self.is_sqlite:
                await connection.execute(_POSTGRESQL_LIMITS)
            yield connection

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Single reads: each statement sees what is committed when it runs."""
        async with self._guarded(), self._begin_reading() as connection:
            yield connection

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncConnection]:
        """Reads that belong together: every statement sees the same moment."""
        async with self._guarded(), self._begin_looking() as connection:
            yield connection

    @property
    def clock(self) -> Label[datetime]:
        """A column to select beside others; `time_in` takes it out of the row."""
        return _SQLITE_CLOCK if self.is_sqlite else _POSTGRESQL_CLOCK

    def time_in(self, row: RowMapping) -> datetime:
        """Return the database's time from a row that was selected with `clock`."""
        stamp: datetime = row["database_now"]
        return stamp + self._offset

    async def now(self, connection: AsyncConnection) -> datetime:
        """Return the database's time, aware and in UTC: the only clock that workers share.

        SQLite has no other clock than its process, so that is not asked by a statement.
        """
        if self.is_sqlite:
            moment = datetime.now(UTC)
            whole = moment.microsecond // _SQLITE_TICK * _SQLITE_TICK
            return moment.replace(microsecond=whole) + self._offset
        return self.time_in((await connection.execute(select(self.clock))).mappings().one())

    async def _check(self, seconds: float) -> None:
        if isinstance(self._engine, DirectEngine):
            with self._translated():
                await self._engine.keep(seconds)
        async with self._guarded(seconds), self._begin_reading() as connection:
            await connection.execute(select(literal_column("1")))

    @asynccontextmanager
    async def _guarded(self, seconds: float | None = None) -> AsyncIterator[None]:
        place = self.address.shown
        try:
            with self._translated():
                async with asyncio.timeout(seconds or self._transaction_seconds) as limit:
                    yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise StorageUnavailable(f"{place}: the transaction took too long: try again") from None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise translate(error, self.address.shown) from None


def _postgresql_engine(url: URL) -> AsyncEngine:
    from sqlalchemy.ext.asyncio import create_async_engine  # noqa: PLC0415 - see `connections`

    try:
        return create_async_engine(
            url,
            hide_parameters=True,
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
            pool_timeout=10,
            connect_args=_POSTGRESQL_CONNECT,
        )
    except SQLAlchemyError:
        raise StorageMisconfigured("the database URL has options that do not work") from None
