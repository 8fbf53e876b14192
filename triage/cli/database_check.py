"""Checks the database without changing it: is it there, and has it this program's schema?

SQLite is looked at with the standard library alone: what cannot be written to is not changed.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from triage import storage
from triage.cli.findings import Finding, Level
from triage.settings import Settings

NAME: Final = "database"
WRITES: Final = "writes"
ALLOWED: Final = "allowed"
ALLOW: Final = "'triage writes allow' allows them again"
ELSEWHERE: Final = (
    "'triage up' or a worker makes it; if there is one elsewhere, go to the folder "
    "where that ran, or set TRIAGE_HOME or TRIAGE_DATABASE_URL"
)
BUSY_SECONDS: Final = 2.0
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
_SQLITE_PREFIX: Final = re.compile(r"sqlite(?:\+aiosqlite)?:///")


async def check(settings: Settings) -> list[Finding]:
    """Return what there is to say about the settings' database."""
    prefix = _SQLITE_PREFIX.match(settings.database_url)
    if prefix:
        name = settings.database_url[prefix.end() :].partition("?")[0]
        found, is_stopped = _sqlite(name)
    else:
        found, is_stopped = await _server(settings.database_url)
    if is_stopped is None:
        return [found]
    if not is_stopped:
        return [found, Finding(WRITES, Level.OK, ALLOWED)]
    return [found, *await _stops(settings)]


def newest_revision() -> str:
    """Return the schema that this program works with, taken from its migrations' file names."""
    folder = Path(storage.__file__).parent / "migrations" / "versions"
    return max(path.name.partition("_")[0] for path in folder.glob("[0-9]*.py"))


def _sqlite(name: str) -> tuple[Finding, bool | None]:
    """Return what there is to say, and whether any writes are stopped, if that can be said."""
    path = Path(name).expanduser().absolute()
    shown = f"SQLite {path}"
    if not path.exists():
        return Finding(NAME, Level.WARN, f"{shown}: none is there yet", ELSEWHERE), None
    try:
        revision, is_stopped = _look(path)
    except sqlite3.Error as error:
        return _unread(shown, getattr(error, "sqlite_errorname", "")), None
    return _judged(shown, revision), is_stopped


def _unread(shown: str, code: str) -> Finding:
    # Nobody may be told to move away what another process works with.
    if code.startswith(_BUSY):
        told, advice = "is locked by another process", "try again"
    else:
        told, advice = "cannot be read", "check its rights, or move it away: a new one is made"
    return Finding(NAME, Level.FAIL, f"{shown}: {told}", advice, is_service=True)


async def _stops(settings: Settings) -> list[Finding]:
    """Say who stopped which writes, and when."""
    # Everything of the store's is slow to load.
    from triage.cli.briefing_lines import stop_sentence  # noqa: PLC0415 - see above
    from triage.cli.stores import look_into_store  # noqa: PLC0415 - likewise
    from triage.storage.errors import StorageError  # noqa: PLC0415 - likewise
    from triage.storage.switches import Switches  # noqa: PLC0415 - likewise

    try:
        async with look_into_store(settings) as store:
            stops = [switch for switch in await Switches(store).list() if switch.stopped]
    except StorageError as error:
        return [Finding(WRITES, Level.WARN, f"cannot be read: {error}", ALLOW)]
    told = [stop_sentence(stop).removeprefix("writes are ") for stop in stops]
    found = [Finding(WRITES, Level.WARN, sentence, ALLOW) for sentence in told]
    return found or [Finding(WRITES, Level.OK, ALLOWED)]


def _look(path: Path) -> tuple[str | None, bool | None]:
    """Return a file's schema, and whether any writes are stopped in it, if it can say so."""
    address = f"file:{quote(str(path))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS)) as connection:
        listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = {str(row[0]) for row in listed}
        if "alembic_version" not in tables:
            return None, None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        if row is None or "switches" not in tables:
            return None if row is None else str(row[0]), None
        stopped = connection.execute("SELECT 1 FROM switches WHERE stopped").fetchone()
    return str(row[0]), stopped is not None


async def _server(url: str) -> tuple[Finding, bool | None]:
    """Return what there is to say, and that the switches have to be looked at, if they can be."""
    # Everything of the store's is slow to load.
    from triage.storage.address import parse_address  # noqa: PLC0415 - see above
    from triage.storage.engine import Store  # noqa: PLC0415 - likewise
    from triage.storage.errors import StorageError  # noqa: PLC0415 - likewise
    from triage.storage.version import schema_revision  # noqa: PLC0415 - likewise

    try:
        shown = parse_address(url).shown
        store = await Store.open(url)
        try:
            found = _judged(shown, revision := await schema_revision(store))
            return found, True if revision == newest_revision() else None
        finally:
            await store.close()
    except StorageError as error:
        return Finding(NAME, Level.FAIL, str(error), "correct it there", is_service=True), None


def _judged(shown: str, revision: str | None) -> Finding:
    wanted = newest_revision()
    if revision is None:
        return Finding(NAME, Level.OK, f"{shown}: the first worker or command makes its tables")
    if revision == wanted:
        return Finding(NAME, Level.OK, f"{shown}: schema {revision}")
    if revision < wanted:
        advice = "start a worker, which upgrades it"
        detail = f"{shown}: schema {revision}, this program's is {wanted}"
        return Finding(NAME, Level.WARN, detail, advice)
    detail = f"{shown}: schema {revision} is newer than this program's {wanted}"
    return Finding(NAME, Level.FAIL, detail, "use a newer program", is_service=True)
