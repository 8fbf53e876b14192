"""The database disappears between the tracker's answer and the ledger's last move."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import psycopg
import pytest
from sqlalchemy import make_url

from tests.crash.arena import Arena
from tests.crash.cells import Database
from tests.crash.places import Action, Place
from tests.crash.records import Record, differences
from tests.crash.scene import Ground
from tests.postgres_server import PostgresServer, opened_server
from triage.faults import Point

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

BEFORE_SETTLE = Place(Point.LEDGER_BEFORE, "settle")
_CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE backend_type = 'client backend' AND pid <> %s"
)
COMMITTING = Place(Point.AUDIT_BEFORE_COMMIT, "operation.applied")


@dataclass(frozen=True)
class Failing:
    """A PostgreSQL server of the test's own, and cells on it."""

    server: PostgresServer
    arena: Arena

    async def cut(self) -> None:
        """End every connection to it but this one's."""
        await asyncio.to_thread(self._cut)

    def _cut(self) -> None:
        url = make_url(self.server.url).set(drivername="postgresql")
        with psycopg.connect(url.render_as_string(), autocommit=True) as connection:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            connection.execute(
                f"{others} WHERE backend_type = 'client backend' AND pid <> %s",
                [connection.info.backend_pid],
            )

    async def crash(self) -> None:
        """End it at once, and leave it so."""
        await asyncio.to_thread(self.server.stop, signal.SIGQUIT)

    async def come_back(self) -> None:
        """Start it again, on what it had kept."""
        await asyncio.to_thread(self.server.start)


@pytest.fixture(scope="module")
async def failing(ground: Ground, postgres_server: str) -> AsyncIterator[Failing]:
    """A server that may fail; where there can be none, the session's own fixture says so."""
    with opened_server() as server:
        yield Failing(server, Arena(ground, server.url))


async def _play(
    failing: Failing,
    place: Place,
    fails: Callable[[], Awaitable[None]],
    comes_back: Callable[[], Awaitable[None]],
) -> Record:
    """Stop a worker at the place, let the database fail, and let the worker find that out."""
    url = await failing.arena.database(Database.POSTGRESQL)
    async with failing.arena.ground.cell(f"{fails.__name__} {place}", database_url=url) as cell:
        worker = await cell.worker(place, Action.FREEZE)
        handle = await cell.start()
        await cell.approve(handle)
        await cell.freezes(worker, handle)
        await fails()
        await worker.thaw()
        await comes_back()
        record = await cell.record(handle)
        assert 0 == await worker.stop(), cell.log()
        return record


async def _nothing() -> None:
    pass


async def test_a_database_that_is_gone_at_settle_fails_no_run(
    failing: Failing, undisturbed: Record
) -> None:
    """The server crashes after the labels went on: the run ends applied once it is back."""
    record = await _play(failing, BEFORE_SETTLE, failing.crash, failing.come_back)
    assert [] == differences(undisturbed, record)


@pytest.mark.parametrize("place", [BEFORE_SETTLE, COMMITTING], ids=str)
async def test_a_connection_that_is_cut_at_settle_fails_no_run(
    failing: Failing, undisturbed: Record, place: Place
) -> None:
    """Before or inside the transaction: what was not committed is read back, and not done again."""
    record = await _play(failing, place, failing.cut, _nothing)
    assert [] == differences(undisturbed, record)
