"""Checks the database without changing it: is it there, and has it this program's schema?

SQLite is looked at with the standard library alone, since loading the store takes as long as all
other checks together.
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
BUSY_SECONDS: Final = 2.0
_SQLITE_PREFIX: Final = re.compile(r"sqlite(?:\+aiosqlite)?:///")


async def check(settings: Settings) -> list[Finding]:
    """Return what there is to say about the settings' database."""
    prefix = _SQLITE_PREFIX.match(settings.database_url)
    if prefix:
        name = settings.database_url[prefix.end() :].partition("?")[0]
        return [_sqlite(name)]
    return [await _server(settings.database_url)]


def newest_revision() -> str:
    """Return the schema that this program works with, taken from its migrations' file names."""
    folder = Path(storage.__file__).parent / "migrations" / "versions"
    return max(path.name.partition("_")[0] for path in folder.glob("[0-9]*.py"))


def _sqlite(name: str) -> Finding:
    path = Path(name).expanduser().absolute()
    shown = f"SQLite {path}"
    if not path.exists():
        return Finding(NAME, Level.OK, f"{shown}: is made by the first worker or command")
    try:
        revision = _revision(path)
    except sqlite3.Error:
        advice = "check its rights, or move it away: a new one is made"
        return Finding(NAME, Level.FAIL, f"{shown}: cannot be read", advice, is_service=True)
    return _judged(shown, revision)


def _revision(path: Path) -> str | None:
    address = f"file:{quote(str(path))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS)) as connection:
        tables = "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"
        if connection.execute(tables).fetchone() is None:
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


async def _server(url: str) -> Finding:
    # Everything of the store's is slow to load.
    from triage.storage.address import parse_address  # noqa: PLC0415 - see above
    from triage.storage.engine import Store  # noqa: PLC0415 - likewise
    from triage.storage.errors import StorageError  # noqa: PLC0415 - likewise
    from triage.storage.version import schema_revision  # noqa: PLC0415 - likewise

    try:
        shown = parse_address(url).shown
        store = await Store.open(url)
        try:
            return _judged(shown, await schema_revision(store))
        finally:
            await store.close()
    except StorageError as error:
        return Finding(NAME, Level.FAIL, str(error), "correct it there", is_service=True)


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
