"""The sender is told in time, whatever the database does: with the limits that the server has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import text

from tests.cli.conftest import NOWHERE
from tests.clock import PATIENCE_SECONDS
from tests.postgres_server import opened_server
from tests.web.hooks import Hook, an_event, encoded, headers_for, hook_settings, serving
from triage.storage.engine import Store
from triage.storage.errors import StorageUnavailable
from triage.web.in_time import in_time

TRIES: Final = 5
"""A machine that stands still may be late once; a limit that is too long is late each time."""


@pytest.fixture
def patience() -> None:
    """Leave the limits as they are."""


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
    took: list[float] = []
    async with _held(hook):
        while min(took, default=2) >= 2 and len(took) < TRIES:
            began = time.monotonic()
            answer = await hook.post(body, X_GitHub_Delivery=guid)
            took.append(time.monotonic() - began)
            assert (503, "database") == (answer.status_code, answer.json()["code"])
            assert int(answer.headers["Retry-After"]) > 0
    assert min(took) < 2
    while (again := await hook.post(body, X_GitHub_Delivery=guid)).status_code == 503:
        # On a slow machine the answer to this one may be too late, too.
        assert (await hook.get("/healthz")).status_code == 200
    assert (202, "accepted") == (again.status_code, again.json()["outcome"])
    assert (1, 1) == (len(await hook.deliveries()), len(await hook.requests()))


async def test_a_driver_that_waits_on_holds_up_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is cut off and does not end is left behind: the sender is told in time."""
    monkeypatch.setattr("triage.web.in_time.ANSWER_SECONDS", 0.05)
    back = asyncio.Event()

    async def stuck() -> None:
        while not back.is_set():
            with suppress(asyncio.CancelledError):
                await back.wait()

    async with asyncio.timeout(PATIENCE_SECONDS):
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


async def test_a_first_connection_may_take_its_time(
    light_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server for deliveries starts although the database is slower than an admission may be."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", NOWHERE)
    monkeypatch.setattr("triage.web.serving.ADMISSION_SECONDS", 1e-9)
    async with serving(hook_settings(tmp_path, light_url)) as hook:
        assert 200 == (await hook.get("/healthz")).status_code
        assert 503 == (await hook.send(an_event())).status_code
