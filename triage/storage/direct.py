"""SQLite without a thread for each statement: what may wait runs in a thread, all else at once.

Why it exists: a statement on a local file takes some microseconds, and handing it to a thread and
back costs many times that; a run has dozens. Only the beginning of a transaction that writes waits
for other processes, and only its commit waits for the disk. In between nobody can be in the way:
the write lock is held, and in WAL mode a reader never waits, nor does the end of its transaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast

from sqlalchemy import Connection, Dialect, Engine, QueuePool, Result, create_engine

from triage.storage.address import Address
from triage.storage.connections import AsyncConnection
from triage.storage.errors import StorageMisconfigured, StorageUnavailable
from triage.storage.patience import until_free
from triage.storage.sqlite import (
    WRITING,
    OpenedFile,
    set_up_connections,
    take,
    took_at_once,
    turn_on_wal,
)

CONNECTIONS: Final = 15
"""At a time; whoever comes later waits for a turn."""

P = ParamSpec("P")
T = TypeVar("T")


class DirectEngine:
    """Connections to one SQLite file, for one event loop."""

    def __init__(self, address: Address, busy_seconds: float) -> None:
        if address.path is None:
            raise StorageMisconfigured("SQLite needs the path of a file")
        # From before the first connection, so that none can be to a file that came later.
        self._path = address.path
        self._file = OpenedFile(address.path)
        self._engine: Engine = create_engine(
            address.url.set(drivername="sqlite"),
            hide_parameters=True,
            pool_size=CONNECTIONS,
            max_overflow=0,
            connect_args={"check_same_thread": False},
        )
        set_up_connections(self._engine, busy_seconds)
        self._busy_seconds = busy_seconds
        self._keeper: sqlite3.Connection | None = None
        # Those of the loop are everybody's: a name server that does not answer holds all of them.
        self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="sqlite")
        # The pool would block the loop when it is empty, and so whoever could fill it.
        self._free = asyncio.Semaphore(CONNECTIONS)

    @property
    def sync_engine(self) -> Engine:
        """The engine, for who listens to its events."""
        return self._engine

    async def dispose(self) -> None:
        """Close every connection."""
        await in_thread(self._threads, self._dispose)
        self._threads.shutdown(wait=False)

    def _dispose(self) -> None:
        self._engine.dispose()
        if self._keeper is not None:
            self._keeper.close()

    async def keep(self, seconds: float) -> None:
        """Have the file write to a log, and hold that open: nobody else removes it then.

        Whoever opens or leaves the file at the same time is waited for. From then on nobody can
        lock the file as a whole: only writers wait, each for the one before.

        Args:
            seconds: how long to wait; whoever is in the way then is told by SQLite's own error.
        """
        await until_free(lambda: in_thread(self._threads, self._keep), seconds)
        self._file.note_beside()

    def _keep(self) -> None:
        if self._keeper is None:
            # It never waits by itself, for a thread that waits cannot be called back.
            self._keeper = sqlite3.connect(
                self._path, timeout=0, isolation_level=None, check_same_thread=False
            )
        turn_on_wal(self._keeper)
        # SQLite opens the log with the first row that is asked for.
        self._keeper.execute("SELECT count(*) FROM sqlite_schema").fetchone()

    def _check(self, connection: Connection) -> None:
        """See that the file is still the one; a connection to another one is not kept."""
        try:
            self._file.check()
        except StorageUnavailable:
            connection.invalidate()
            raise

    def _has_idle(self) -> bool:
        return cast("QueuePool", self._engine.pool).checkedin() > 0

    async def _connected(self) -> Connection:
        """Return a connection: one that is idle, or a new one, which may wait for the file."""
        if self._has_idle():
            return self._engine.connect()
        made: list[Connection] = []
        try:
            await in_thread(self._threads, lambda: made.append(self._engine.connect()))
        except BaseException:
            for connection in made:
                connection.close()
            raise
        return made[0]

    @asynccontextmanager
    async def begin(self, how: str | None = None) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end, or nothing of it is kept.

        Args:
            how: the statement that begins it; None lets each statement stand alone.

        Raises:
            StorageUnavailable: another file has the path by now, or none: nothing was begun.
        """
        async with self._free:
            # Before: to connect would make a file. After: whoever waited may have waited long.
            self._file.check()
            is_idle = self._has_idle()
            with await self._connected() as connection:
                at_once = how is None or took_at_once(connection, how, self._busy_seconds)
                if how is not None and not at_once:
                    await in_thread(self._threads, partial(take, connection, how))
                connection.begin()
                try:
                    if not (is_idle and at_once):
                        self._check(connection)
                    yield cast("AsyncConnection", DirectConnection(connection, self._threads))
                except BaseException:
                    connection.rollback()
                    raise
                if how == WRITING:
                    await in_thread(self._threads, connection.commit)
                else:
                    connection.commit()


class DirectConnection:
    """The part of `AsyncConnection` that the store uses."""

    def __init__(self, connection: Connection, threads: Executor) -> None:
        self.sync_connection = connection
        self._threads = threads

    @property
    def dialect(self) -> Dialect:
        """SQLite's."""
        return self.sync_connection.dialect

    async def execute(self, *arguments: Any, **options: Any) -> Result[Any]:  # noqa: ANN401 - as SQLAlchemy has it
        """Run a statement."""
        return self.sync_connection.execute(*arguments, **options)

    async def scalar(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - likewise
        """Run a statement and return the first column of its first row."""
        return self.sync_connection.scalar(*arguments, **options)

    async def scalars(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - likewise
        """Run a statement and return the first column of its rows."""
        return self.sync_connection.scalars(*arguments, **options)

    async def run_sync(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Let plain code use the connection, in a thread, for it may take long."""
        return await in_thread(self._threads, lambda: work(self.sync_connection, *args, **kwargs))

    @asynccontextmanager
    async def stream(self, *arguments: Any, **options: Any) -> AsyncIterator[_Rows]:  # noqa: ANN401 - likewise
        """Run a statement whose rows are fetched as they are asked for."""
        with self.sync_connection.execute(*arguments, **options) as result:
            yield _Rows(result)


class _Rows:
    def __init__(self, result: Any) -> None:  # noqa: ANN401 - rows of any kind
        self._result = result

    def mappings(self) -> _Rows:
        return _Rows(self._result.mappings())

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._each()

    async def _each(self) -> AsyncIterator[Any]:
        for row in self._result:
            yield row
            # Long answers must not hold up everybody else.
            await asyncio.sleep(0)


async def in_thread(threads: Executor, work: Callable[[], T]) -> T:
    """Run what may wait in one of `threads`, and see it to its end, also when cancelled meanwhile.

    A thread cannot be called back, and what it works on must not be used by anybody meanwhile.
    """
    running = asyncio.get_running_loop().run_in_executor(threads, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({running})
        # It is over, one way or the other: its error has nobody to go to.
        running.exception()
        raise
