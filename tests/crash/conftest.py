"""A server that keeps its data in a file, as `triage up` runs it, and cells on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import count

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from tests.conftest_storage import postgres_server
from tests.crash.scene import Cell, Record, make_template, opened_cell
from triage.embedded import EmbeddedServer, ServerOptions
from triage.storage.migrate import upgrade

__all__ = ["postgres_server"]

OpenCell = Callable[[str], Cell]


@pytest.fixture(scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServer]:
    """A real server on a file."""
    file = tmp_path_factory.mktemp("server") / "temporal.db"
    async with EmbeddedServer(ServerOptions(db_filename=file)) as running:
        yield running


@pytest.fixture(scope="session")
async def open_cell(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> OpenCell:
    """Return a function that opens a cell with a queue and a database of its own."""
    template = await make_template(tmp_path_factory.mktemp("cells"))
    return partial(
        opened_cell, client=server.client, connection=server.environment(), template=template
    )


@pytest.fixture(scope="session")
async def undisturbed(open_cell: OpenCell) -> Record:
    """What a run that nothing happened to did and left behind."""
    return await open_cell("undisturbed").undisturbed()


@pytest.fixture(scope="session")
async def open_postgres_cell(
    server: EmbeddedServer, postgres_server: str, tmp_path_factory: pytest.TempPathFactory
) -> OpenCell:
    """Return a function that opens a cell with a PostgreSQL database of its own."""
    folder = tmp_path_factory.mktemp("postgres-cells") / "none"
    await upgrade(_with_database(postgres_server, "template_of_cells"))
    numbers = count(1)

    def opened(name: str) -> Cell:
        url = _with_database(postgres_server, f"cell_{next(numbers)}", "template_of_cells")
        return opened_cell(name, server.client, server.environment(), folder, url)

    return opened


def _with_database(server: str, name: str, template: str = "template0") -> str:
    """Create a database and return its URL."""
    url = make_url(server)
    with psycopg.connect(url.set(drivername="postgresql").render_as_string(), autocommit=True) as c:
        c.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*map(sql.Identifier, (name, template)))
        )
    return url.set(database=name).render_as_string(hide_password=False)
