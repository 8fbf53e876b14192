"""A server that keeps its data in a file, as `triage up` runs it, and cells on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest_storage import postgres_server
from tests.crash.arena import Arena, opened_ground
from tests.crash.cells import Kind
from tests.crash.records import Record
from tests.crash.scenarios import PLAIN
from tests.crash.scene import Ground

__all__ = ["postgres_server"]


@pytest.fixture(scope="session")
async def ground(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    """A real server on a file, and an empty database to copy."""
    async with opened_ground(tmp_path_factory.mktemp("crash")) as opened:
        yield opened


@pytest.fixture(scope="session")
def arena(ground: Ground, postgres_server: str) -> Arena:
    """Where cells are played, on either database."""
    return Arena(ground, postgres_server)


@pytest.fixture(scope="session")
async def undisturbed(arena: Arena) -> Record:
    """What a run that nothing happened to did and left behind."""
    record = await arena.undisturbed(Kind.RUN, PLAIN)
    assert isinstance(record, Record)
    return record
