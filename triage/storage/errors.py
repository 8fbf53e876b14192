"""What can go wrong with the store, told in words that a person can act on.

Why it exists: drivers report one fault in dozens of ways, and quote what they were given: rows,
statements, addresses with passwords. Here each fault becomes one of three types with a sentence of
ours. Nothing of the driver's own text gets through, except the name of a constraint or a code.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Final

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError


class StorageError(Exception):
    """The store could not do what was asked; the message says what to do about it."""


class StorageUnavailable(StorageError):  # noqa: N818 - reads as a state: it may pass
    """The store may answer later: it is unreachable, busy, full or read-only.

    A write that ended this way may or may not have been committed.
    """


class StorageMisconfigured(StorageError):  # noqa: N818 - reads as a state: it stays
    """The store will not answer until a person changes something."""


class StorageUnreadable(StorageError):  # noqa: N818 - reads as a state: it stays
    """A row holds what this system never writes there: somebody edited it."""


class StorageRejected(StorageError):  # noqa: N818 - reads as an answer
    """The store refused a row; nothing of the transaction was kept.

    Attributes:
        constraint: the name of the constraint, or an empty string when the driver gave none.
    """

    def __init__(self, message: str, constraint: str = "") -> None:
        super().__init__(message)
        self.constraint = constraint


_Kind = type[StorageUnavailable] | type[StorageMisconfigured]

# By SQLSTATE, or by its first two characters.
_POSTGRESQL: Final[dict[str, tuple[_Kind, str]]] = {
    "08": (StorageUnavailable, "the connection to PostgreSQL broke: try again"),
    "28": (StorageMisconfigured, "PostgreSQL refused the user or password: check the database URL"),
    "3D": (
        StorageMisconfigured,
        "the PostgreSQL database does not exist: create it, or correct its name",
    ),
    "42501": (StorageMisconfigured, "the database user lacks a right on a table: grant it"),
    "42": (StorageMisconfigured, "a table or column is missing: upgrade the database schema"),
    "25006": (StorageUnavailable, "PostgreSQL is read-only at the moment: is this a standby?"),
    "40": (
        StorageUnavailable,
        "PostgreSQL broke off a transaction in favour of another: try again",
    ),
    "53100": (StorageUnavailable, "PostgreSQL's disk is full: make room"),
    "53": (StorageUnavailable, "PostgreSQL has no connection or memory left: try again"),
    "55P03": (StorageUnavailable, "a row stayed locked by another transaction: try again"),
    "57014": (StorageUnavailable, "PostgreSQL took too long: try again"),
    "57": (StorageUnavailable, "PostgreSQL is starting or stopping: try again"),
    "58": (StorageUnavailable, "PostgreSQL's disk reports errors: look at the server's log"),
    "XX": (StorageMisconfigured, "PostgreSQL reports damaged data: restore a backup"),
}

# A connection that fails comes without a SQLSTATE, so by what the server says in English.
_POSTGRESQL_CONNECT: Final = (
    (re.compile(r'FATAL:  database ".*" does not exist'), "3D000"),
    (re.compile(r"FATAL:  (password|[\w-]+) authentication failed|FATAL:  role "), "28P01"),
    (re.compile(r"FATAL:  no pg_hba.conf entry"), "28000"),
    (re.compile(r"FATAL:  (sorry, too many clients|remaining connection slots)"), "53300"),
    (re.compile(r"FATAL:  the database system is"), "57P03"),
)

# By the first words of SQLite's name for the fault.
_SQLITE: Final[dict[str, tuple[_Kind, str]]] = {
    "SQLITE_FULL": (StorageUnavailable, "the disk is full: make room"),
    "SQLITE_BUSY": (StorageUnavailable, "the file stayed locked by another process: try again"),
    "SQLITE_LOCKED": (StorageUnavailable, "the file stayed locked by another process: try again"),
    "SQLITE_PROTOCOL": (StorageUnavailable, "the file stayed locked by another process: try again"),
    "SQLITE_IOERR": (
        StorageUnavailable,
        "the disk reports errors or is full: check it, then restart",
    ),
    "SQLITE_CANTOPEN": (
        StorageMisconfigured,
        "the file cannot be opened: check its folder and rights",
    ),
    "SQLITE_READONLY": (
        StorageMisconfigured,
        "the file cannot be written: check its rights and owner",
    ),
    "SQLITE_PERM": (StorageMisconfigured, "the file cannot be used: check its rights and owner"),
    "SQLITE_AUTH": (StorageMisconfigured, "the file cannot be used: check its rights and owner"),
    "SQLITE_NOTADB": (StorageMisconfigured, "the file is not a SQLite database: move it away"),
    "SQLITE_CORRUPT": (
        StorageMisconfigured,
        "the file is damaged: restore a backup, or move it away",
    ),
    "SQLITE_ERROR": (
        StorageMisconfigured,
        "a table or column is missing: upgrade the database schema",
    ),
}

_SQLITE_IS_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
_SQLITE_CONSTRAINT: Final = re.compile(r"constraint failed: ([A-Za-z0-9_.]{1,80})")


def translate(error: SQLAlchemyError | sqlite3.Error, place: str) -> StorageError:
    """Turn any error of the database library, or of SQLite's driver, into one of ours.

    Args:
        error: what was raised.
        place: where the store is, without secrets.

    Returns:
        An error to raise ``from None``: its cause may hold rows and statements.
    """
    if isinstance(error, PoolTimeoutError):
        return StorageUnavailable(f"{place}: every connection is in use: try again")
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(error, IntegrityError | DataError):
        return _rejected(cause, place)
    code = _code_of(cause)
    table = _SQLITE if code.startswith("SQLITE_") else _POSTGRESQL
    kind, advice = _look_up(table, code)
    if kind is None:
        return _unknown(error, cause, place)
    return kind(f"{place}: {advice} ({code})")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else was in the way, and nothing else was wrong."""
    return _code_of(error).startswith(_SQLITE_IS_BUSY)


def _look_up(table: dict[str, tuple[_Kind, str]], code: str) -> tuple[_Kind | None, str]:
    prefixes = (key for key in table if code.startswith(key))
    best = max(prefixes, key=len, default=None)
    return (None, "") if best is None else table[best]


def _code_of(cause: BaseException | None) -> str:
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorname", "")
    if _is_postgresqls(cause):
        return getattr(cause, "sqlstate", None) or _code_of_connect(str(cause))
    return ""


def _is_postgresqls(cause: BaseException | None) -> bool:
    """Whether psycopg raised it; psycopg is not imported here, for those who use SQLite only."""
    return type(cause).__module__.partition(".")[0] == "psycopg"


def _code_of_connect(said: str) -> str:
    return next((code for pattern, code in _POSTGRESQL_CONNECT if pattern.search(said)), "")


def _rejected(cause: BaseException | None, place: str) -> StorageRejected:
    constraint = ""
    if _is_postgresqls(cause):
        constraint = getattr(getattr(cause, "diag", None), "constraint_name", None) or ""
    elif found := _SQLITE_CONSTRAINT.search(str(cause)):
        constraint = found.group(1)
    return StorageRejected(f"{place}: a row was refused ({constraint or 'no name'})", constraint)


def _unknown(error: BaseException, cause: BaseException | None, place: str) -> StorageError:
    if isinstance(error, OperationalError | InterfaceError) and _is_postgresqls(cause):
        return StorageUnavailable(
            f"{place}: not reachable: is the server up, and the address right?"
        )
    name = type(cause or error).__name__
    return StorageUnavailable(f"{place}: the database failed in an unexpected way ({name})")
