"""Fixtures that give a test an open store, on SQLite and on PostgreSQL.

Import them into a `conftest.py`. A test that takes `store` (or `store_url`, or `empty_url`) runs
once on each database. Where no PostgreSQL can be had it is skipped, and in CI it fails.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from tests.postgres_server import NoPostgresError, running_server
from triage.storage.engine import Store
from triage.storage.migrate import upgrade
from triage.storage.schema import metadata

__all__ = ["empty_url", "postgres_server", "store", "store_url"]

BOTH = [pytest.param("sqlite"), pytest.param("postgresql", marks=pytest.mark.postgres)]
_numbers = count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server that lives as long as the test session."""
    try:
        with running_server() as url:
            yield url
    except NoPostgresError as error:
        reason = f"NO POSTGRESQL, SO HALF OF THE STORE IS UNTESTED: {error}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(params=BOTH)
async def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store' / 'triage.db'}"
    server: str = request.getfixturevalue("postgres_server")
    return await _create_database(server)


@pytest.fixture(params=BOTH)
async def store_url(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The URL of a database with every table and no row."""
    if request.param == "sqlite":
        path = tmp_path / "triage.db"
        shutil.copyfile(await template(tmp_path_factory), path)
        return f"sqlite:///{path}"
    server: str = request.getfixturevalue("postgres_server")
    return await _emptied(server)


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """An open store with every table and no row."""
    opened = await Store.open(store_url)
    yield opened
    await opened.close()


_templates: list[Path] = []
_migrated: dict[str, str] = {}


async def template(factory: pytest.TempPathFactory) -> Path:
    """Give the session's one migrated SQLite file, to be copied."""
    if not _templates:
        path = factory.mktemp("template") / "triage.db"
        await upgrade(f"sqlite:///{path}")
        _templates.append(path)
    return _templates[0]


async def _emptied(server: str) -> str:
    """Give the session's one migrated database, with its rows removed."""
    if server not in _migrated:
        url = await _create_database(server)
        await upgrade(url)
        _migrated[server] = url
        return url
    tables = ", ".join(f'"{table.name}"' for table in metadata.sorted_tables)
    await _execute(_migrated[server], f"TRUNCATE {tables}")
    return _migrated[server]


async def _create_database(server: str) -> str:
    name = f"test_{next(_numbers)}"
    await _execute(server, f"CREATE DATABASE {name}")
    return server.replace("@/postgres?", f"@/{name}?")


async def _execute(url: str, statement: str) -> None:
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        await connection.execute(text(statement))
    await engine.dispose()
