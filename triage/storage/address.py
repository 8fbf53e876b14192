"""Where the database is, taken from a URL that may hold a password.

Why it exists: the password must reach the driver and nothing else, so the one place that takes the
URL apart also makes the form that messages may show.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from triage.storage.errors import StorageMisconfigured

_DRIVERS: Final = {
    "sqlite": "sqlite",
    "sqlite+aiosqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_HELP: Final = "use sqlite:///path/to/triage.db or postgresql+psycopg://user@host/name"


@dataclass(frozen=True)
class Address:
    """A database's place.

    Attributes:
        url: for the driver, password included; never shown.
        shown: for people, such as ``PostgreSQL db.example:5432/triage``.
        path: the file, for SQLite only.
    """

    url: URL = field(repr=False)
    shown: str
    path: Path | None

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a SQLite file; otherwise it is a PostgreSQL server."""
        return self.path is not None


def parse_address(url: str) -> Address:
    """Read a database URL.

    Raises:
        StorageMisconfigured: it names no supported database; the message never quotes it.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StorageMisconfigured(f"the database URL cannot be read: {_HELP}") from None
    driver = _DRIVERS.get(parsed.drivername)
    if driver is None:
        raise StorageMisconfigured(f"the database URL names no supported database: {_HELP}")
    parsed = parsed.set(drivername=driver)
    return _sqlite(parsed) if driver.startswith("sqlite") else _postgresql(parsed)


def _sqlite(url: URL) -> Address:
    name = url.database or ""
    if url.host or not name or name == ":memory:" or name.startswith("file:") or "\0" in name:
        raise StorageMisconfigured(f"SQLite needs the path of a file: {_HELP}")
    path = Path(name).expanduser().absolute()
    return Address(url.set(database=str(path)), f"SQLite {path}", path)


def _postgresql(url: URL) -> Address:
    host = url.host or url.query.get("host") or "the local socket"
    port = f":{url.port}" if url.port else ""
    return Address(url, f"PostgreSQL {host}{port}/{url.database or ''}", None)
