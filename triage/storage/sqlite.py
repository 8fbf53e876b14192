"""What SQLite needs to be a safe store: a private file, WAL, full synchronisation, honest locks."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, event

from triage.storage.errors import StorageMisconfigured, StorageUnavailable

LOOKING: Final = "BEGIN"
"""Begins a transaction that only reads, and takes no lock before the first row is asked for."""
WRITING: Final = "BEGIN IMMEDIATE"
"""Begins a transaction that may write, and takes the lock for it."""

_PRIVATE: Final = 0o600
_BESIDE: Final = ("-wal", "-shm")
_BESIDE_TOLD: Final = " or ".join(_BESIDE)


def prepare_file(path: Path) -> None:
    """Make the file and its folder if they are not there, readable by their owner alone.

    A file that is there is never opened: to close it would end every lock that this process has on
    it, as POSIX has it. Another process would then take itself for the last one, and remove the
    log that a store of this process goes on writing to.

    SQLite gives its side files (``-wal``, ``-shm``) the same mode.

    Raises:
        StorageMisconfigured: the file or its folder cannot be made or used.
    """
    try:
        # Looked at first: a device or a pipe is never touched, let alone changed.
        is_ours = not path.exists() or path.is_file()
        if not is_ours:
            raise StorageMisconfigured(f"SQLite {path}: is no regular file: name another")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make(Path(os.path.realpath(path)))
        _close_to_others(path)
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        what = error.strerror or "unknown error"
        raise StorageMisconfigured(
            f"SQLite {path}: cannot be made or written ({what}): check its folder and rights"
        ) from None


def _make(path: Path) -> None:
    with suppress(FileExistsError):
        # Nobody can have a lock on what was not there.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE))


def _close_to_others(path: Path) -> None:
    # Somebody else's file is shared with us on purpose. One that is private already is touched,
    # too: one of a container's image becomes the container's own, as which it is known from then.
    with suppress(PermissionError):
        path.chmod(_PRIVATE)


class OpenedFile:
    """The file that stood at a path when it was opened, and what SQLite keeps beside it.

    Why it exists: a connection stays with its file when that is moved away, and a new connection
    takes whatever stands there by then. Whoever stops writes in the one does not stop them in the
    other. So who works with a file that is not at its place any more stops working; the log and
    its index, which hold the newest commits and the locks, are as much of it as the file itself.
    """

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._identity = _identity(self._path)
        self._beside: tuple[tuple[str, tuple[int, int] | None], ...] = ()

    def note_beside(self) -> None:
        """Take the log and its index as they are; some connection has to keep them from now on."""
        # They stand beside the file itself, wherever a link to it does.
        place = os.path.realpath(self._path)
        names = (f"{place}{end}" for end in _BESIDE)
        self._beside = tuple((name, _identity(name)) for name in names)

    def check(self) -> None:
        """See that the same files stand there: a look at each, without opening anything.

        Raises:
            StorageUnavailable: one was moved, removed or replaced, or cannot be looked at.
        """
        if self._identity is None or _identity(self._path) != self._identity:
            raise StorageUnavailable(
                f"SQLite {self._path}: the file was moved, removed or replaced while it was in use:"
                " put it back, or restart the worker (and whatever else has it open)"
            )
        if any(_identity(name) != identity for name, identity in self._beside):
            raise StorageUnavailable(
                f"SQLite {self._path}: a file beside it ({_BESIDE_TOLD}) was moved, removed or"
                " replaced while it was in use: put it back, or stop all that has it open"
            )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        # Not Path.stat, which takes longer: each transaction looks several times.
        found = os.stat(path)  # noqa: PTH116 - see above
    except OSError:
        return None
    return found.st_dev, found.st_ino


def set_up_connections(engine: Engine, busy_seconds: float) -> None:
    """Make every connection of `engine` careful, and begin no transaction that nobody asked for.

    Where neither `took_at_once` nor `take` began one, each statement stands alone. Nothing is told
    of statements or transactions: the library then asks for each who wants to know of it.

    Args:
        engine: one that made no connection yet.
        busy_seconds: how long to wait for another process that writes.
    """
    pragmas = (
        f"PRAGMA busy_timeout = {busy_seconds * 1000:.0f}",  # first: the others may wait too
        "PRAGMA synchronous = FULL",
        "PRAGMA foreign_keys = ON",
    )

    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: object) -> None:  # noqa: ANN401 - a driver's own
        # The driver must not open transactions by itself: it would open deferred ones.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(pragma)
        cursor.close()

    @event.listens_for(engine, "invalidate")
    def on_invalidate(connection: Any, _record: object, _error: object) -> None:  # noqa: ANN401 - likewise
        # A cancelled transaction ends here. Closing its connection would not end it: while a cursor
        # is alive somewhere SQLite keeps the connection, and with it the lock on the whole file.
        with suppress(Exception):
            connection.rollback()


def turn_on_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to write-ahead logging, which stays on.

    Raises:
        sqlite3.Error: also when somebody is in the way, and then at once, whatever the timeout.
        StorageMisconfigured: the file system cannot do it (network shares cannot).
    """
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode is None or mode[0] != "wal":
        raise StorageMisconfigured("SQLite needs a local disk: write-ahead logging is not possible")


def took_at_once(connection: Connection, begin: str, busy_seconds: float) -> bool:
    """Begin a transaction unless that has to wait for another process; return whether it did."""
    driver: Any = connection.connection.dbapi_connection
    if begin == LOOKING:
        driver.execute(begin)
        return True
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        driver.execute(begin)
    except sqlite3.Error:
        return False
    finally:
        driver.execute(f"PRAGMA busy_timeout = {busy_seconds * 1000:.0f}")
    return True


def take(connection: Connection, begin: str) -> None:
    """Begin a transaction, and wait for whoever is in the way."""
    driver: Any = connection.connection.dbapi_connection
    driver.execute(begin)
