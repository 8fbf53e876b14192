"""The process behind `triage serve`: takes deliveries, starts runs, and ends in order."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import uvicorn
from starlette.applications import Starlette
from temporalio.client import Client

from triage import connection
from triage.settings import Settings, SettingsError
from triage.storage.admission import Admission
from triage.storage.commands import Commands
from triage.storage.documents import DocumentStore
from triage.storage.engine import DEFAULT_TRANSACTION_SECONDS, Store
from triage.storage.errors import StorageError
from triage.storage.migrate import upgrade
from triage.storage.outbox import DEFAULT_LEASE_SECONDS, Outbox
from triage.web.app import make_app
from triage.web.flood import Flood
from triage.web.hearing import Hearing
from triage.web.intake import Intake
from triage.web.starter import Starter

ADMISSION_SECONDS: Final = 1.5
"""Of the two seconds in which a delivery is answered, what the database may take."""
MAX_CONNECTIONS: Final = 200
KEEP_ALIVE_SECONDS: Final = 5
STOP_SECONDS: Final = 5


@dataclass(frozen=True)
class House:
    """What serves: an application, the task that starts runs, and what others need of it.

    Attributes:
        app: answers deliveries.
        starter: starts runs.
        store: where everything is recorded.
        admission: records what was found in another way than by a delivery.
        heard: is set when somebody has said something that has to be carried on.
    """

    app: Starlette
    starter: Starter
    store: Store
    admission: Admission
    heard: asyncio.Event


Companions = Callable[[House], AbstractAsyncContextManager[None]]
"""What runs beside it and reaches further than it may: trackers, and keys that sign."""


class _Server(uvicorn.Server):
    """Says when it answers, and leaves signals to whoever runs it."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def secrets_of(settings: Settings) -> list[bytes]:
    """Return the secrets that may have signed a delivery.

    Raises:
        SettingsError: there is none.
    """
    if settings.webhook_secret is None:
        raise SettingsError(
            "TRIAGE_WEBHOOK_SECRET: is not set, so no delivery can be told from a forged one;"
            " set it, or TRIAGE_WEBHOOK_SECRET_FILE"
        )
    both = (settings.webhook_secret, settings.webhook_secret_previous)
    return [secret.get_secret_value().encode() for secret in both if secret is not None]


@asynccontextmanager
async def open_house(
    settings: Settings, lease_seconds: float = DEFAULT_LEASE_SECONDS
) -> AsyncIterator[House]:
    """Bring the database up to date and open what serves; the starter is not running yet.

    Raises:
        SettingsError: there is no secret.
        StorageError: the database cannot be used.
    """
    secrets = secrets_of(settings)
    await upgrade(settings.database_url)
    async with contextlib.AsyncExitStack() as opened:
        # Nobody waits for an answer yet: a first connection may take its time.
        quick = await Store.open(
            settings.database_url,
            transaction_seconds=ADMISSION_SECONDS,
            opening_seconds=DEFAULT_TRANSACTION_SECONDS,
        )
        opened.push_async_callback(quick.close)
        store = await Store.open(settings.database_url)
        opened.push_async_callback(store.close)
        starter = Starter(
            Outbox(store, lease_seconds),
            DocumentStore(store),
            lambda: _connect(settings),
            settings.task_queue,
        )
        heard = asyncio.Event()
        intake = _intake(settings, secrets, quick, starter, heard)
        checks = {"database": lambda: _answers(quick), "server": starter.answers}
        admission = Admission(store, timedelta(days=settings.evidence_retention_days))
        yield House(make_app(intake, checks), starter, store, admission, heard)


def _intake(
    settings: Settings, secrets: list[bytes], quick: Store, starter: Starter, heard: asyncio.Event
) -> Intake:
    """Return what takes deliveries; comments too, where there is a key to answer for people."""
    ignored = {login.lower() for login in settings.webhook_ignored_senders}
    admission = Admission(quick, timedelta(days=settings.evidence_retention_days))
    flood = Flood(settings.webhook_rate_per_minute)
    hearing = Hearing(
        ignored=ignored,
        admission=admission,
        commands=Commands(quick),
        flood=flood,
        heard=heard.set,
    )
    return Intake(
        secrets=secrets,
        ignored=ignored,
        tracker=settings.tracker,
        admission=admission,
        flood=flood,
        admitted=starter.wake,
        hearing=None if settings.service_key is None else hearing,
    )


async def serve(
    settings: Settings,
    listening: socket.socket,
    ready: Callable[[], None],
    companions: Companions | None = None,
) -> None:
    """Serve on a bound socket until cancelled; what is being answered is answered.

    Args:
        settings: all that it is told.
        listening: where.
        ready: called once requests are answered.
        companions: what runs beside it, if anything does.

    Raises:
        SettingsError: there is no secret.
        StorageError: the database cannot be used.
    """
    async with contextlib.AsyncExitStack() as running:
        house = await running.enter_async_context(open_house(settings))
        if companions is not None:
            await running.enter_async_context(companions(house))
        server = _Server(_config(house.app), ready)
        starting = asyncio.create_task(house.starter.run())
        answering = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            await asyncio.wait({starting, answering}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.should_exit = True
            await asyncio.gather(answering, return_exceptions=True)
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)


def _config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
    )


async def _connect(settings: Settings) -> Client:
    client = await connection.connect(settings)
    connection.check_storage_is_reachable(settings, client)
    return client


async def _answers(store: Store) -> bool:
    try:
        async with store.read() as looked:
            await store.now(looked)
    except StorageError:
        return False
    return True
