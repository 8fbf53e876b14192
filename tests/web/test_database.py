"""A database that is away: nobody is told 202, and the same delivery is taken afterwards."""

from __future__ import annotations

import time

import httpx2
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from tests.clock import PATIENCE_SECONDS
from tests.web.hooks import Hook, an_event


@pytest.mark.postgres
@pytest.mark.parametrize("store_url", [pytest.param("postgresql")], indirect=True)
async def test_a_database_that_is_gone_is_503_until_it_is_back(hook: Hook) -> None:
    """Connections cut and refused: 503, and not ready; once it is back, all is well."""
    name = hook.store.address.url.database
    server = hook.store.address.url.set(database="postgres")
    assert 200 == (await hook.get("/readyz")).status_code
    engine = create_async_engine(server, isolation_level="AUTOCOMMIT")
    async with engine.connect() as admin:
        await admin.execute(text(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'))
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
        await admin.execute(text(cut), {"name": name})
        try:
            gone = [await hook.send(an_event()), await hook.get("/healthz")]
            ready = await _changed(hook)
        finally:
            await admin.execute(text(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'))
    await engine.dispose()
    assert [503, 200] == [answer.status_code for answer in gone]
    assert (503, "unreachable") == (ready.status_code, ready.json()["database"])
    assert 202 == (await hook.send(an_event())).status_code


async def _changed(hook: Hook) -> httpx2.Response:
    """Ask until the last answer is no longer remembered."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (answer := await hook.get("/readyz")).status_code == 200:
        assert time.monotonic() < deadline
    return answer


async def test_ready_says_what_can_be_done(light_hook: Hook) -> None:
    """Without Temporal deliveries are taken, so it is ready, and says what is missing."""
    answers = [await light_hook.get(path) for path in ("/healthz", "/readyz")]
    assert [200, 200] == [answer.status_code for answer in answers]
    assert {"database": "ok", "server": "unreachable"} == answers[1].json()
