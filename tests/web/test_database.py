"""A database that is away: nobody is told 202, and the same delivery is taken afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from tests.cli.conftest import NOWHERE
from tests.postgres_server import opened_server
from tests.web.hooks import Hook, an_event, encoded, headers_for, hook_settings, serving
from triage.storage.engine import Store
from triage.storage.errors import StorageUnavailable
from triage.web.in_time import in_time


@asynccontextmanager
async def _held(hook: Hook) -> AsyncIterator[None]:
    """Keep everybody from writing, as a process that hangs in a transaction would."""
    other = await Store.open(hook.store.address.url.render_as_string(hide_password=False))
    async with other.write() as connection:
        if not hook.store.is_sqlite:
            await connection.execute(text("LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE"))
        yield
    await other.close()


async def test_a_database_that_does_not_answer_is_503_in_time(hook: Hook) -> None:
    """503 within two seconds, with when to come again; afterwards the same delivery is taken."""
    body = encoded(an_event())
    guid = headers_for(body)["X-GitHub-Delivery"]
    async with _held(hook):
        began = time.monotonic()
        answer = await hook.post(body, X_GitHub_Delivery=guid)
        took = time.monotonic() - began
    assert (503, "database") == (answer.status_code, answer.json()["code"])
    assert int(answer.headers["Retry-After"]) > 0
    assert took < 2
    again = await hook.post(body, X_GitHub_Delivery=guid)
    assert (202, "accepted") == (again.status_code, again.json()["outcome"])
    assert (1, 1) == (len(await hook.deliveries()), len(await hook.requests()))


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
    deadline = time.monotonic() + 5
    while (answer := await hook.get("/readyz")).status_code == 200:
        assert time.monotonic() < deadline
    return answer


async def test_a_driver_that_waits_on_holds_up_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is cut off and does not end is left behind: the sender is told in time."""
    monkeypatch.setattr("triage.web.in_time.ANSWER_SECONDS", 0.05)
    back = asyncio.Event()

    async def stuck() -> None:
        while not back.is_set():
            with suppress(asyncio.CancelledError):
                await back.wait()

    async with asyncio.timeout(10):
        with pytest.raises(StorageUnavailable):
            await in_time(stuck())
    back.set()


@pytest.mark.long
async def test_a_server_that_stands_still_is_503_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on the connection that was open before, whose driver asks it to stop first."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", NOWHERE)
    with opened_server() as server:
        async with serving(hook_settings(tmp_path, server.url)) as hook:
            assert 202 == (await hook.send(an_event())).status_code
            began = time.monotonic()
            with server.standing_still():
                answers = await asyncio.gather(
                    *(hook.send(an_event(number=n)) for n in range(2, 7))
                )
                took = time.monotonic() - began
            assert {503} == {answer.status_code for answer in answers}
            assert took < 3
            assert 202 == (await hook.send(an_event(number=9))).status_code


async def test_ready_says_what_can_be_done(light_hook: Hook) -> None:
    """Without Temporal deliveries are taken, so it is ready, and says what is missing."""
    answers = [await light_hook.get(path) for path in ("/healthz", "/readyz")]
    assert [200, 200] == [answer.status_code for answer in answers]
    assert {"database": "ok", "server": "unreachable"} == answers[1].json()
