"""A server that keeps its data in a file, as `triage up` runs it, and cells on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest

from tests.crash.scene import Cell, Record, make_template, opened_cell
from triage.embedded import EmbeddedServer, ServerOptions

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
