"""What strikes all runs at once: workers, the database and the switch that stops writes."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from random import Random
from typing import Final

import psycopg

from tests.soak.crew import Crew
from tests.soak.databases import Database
from tests.soak.plans import TENANTS
from triage.storage.engine import Store
from triage.storage.errors import StorageError
from triage.storage.switches import Switches

WORKER_PAUSE_SECONDS: Final = (3.0, 12.0)
DATABASE_PAUSE_SECONDS: Final = (1.0, 6.0)
SWITCH_PAUSE_SECONDS: Final = (10.0, 25.0)
STOPPED_SECONDS: Final = (1.0, 4.0)
LONG_STOP_SECONDS: Final = 12.0
"""Now and then, so that a write that wakes up late would be seen."""
LONG_STOP_CHANCE: Final = 0.2
_BY: Final = "soak"


@dataclass(frozen=True, kw_only=True)
class Stop:
    """While writes were surely stopped, in seconds since 1970: everybody's or one tenant's."""

    tenant: str | None
    since: float
    until: float


class Disasters:
    """Strikes at random moments; each kind draws from a stream of its own.

    Attributes:
        stops: when writes were stopped.
    """

    def __init__(
        self, seed: int, crew: Crew, database: Database, store: Store, counts: Counter[str]
    ) -> None:
        self._crew = crew
        self._database = database
        self._switches = Switches(store)
        self._counts = counts
        self.stops: list[Stop] = []
        self._streams = {
            name: Random(f"{seed} {name}")  # noqa: S311 - a test repeats it
            for name in ("workers", "database", "switch")
        }

    @asynccontextmanager
    async def raging(self) -> AsyncIterator[None]:
        """Strike again and again while the body runs; at its end, writes are allowed."""
        kinds = (
            self._rage(self._streams["workers"], WORKER_PAUSE_SECONDS, self._strike_worker),
            self._rage(self._streams["database"], DATABASE_PAUSE_SECONDS, self._strike_database),
            self._rage(self._streams["switch"], SWITCH_PAUSE_SECONDS, self._stop_writes),
        )
        tasks = [asyncio.create_task(kind) for kind in kinds]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for tenant in (None, *TENANTS):
                await self._allow(tenant)

    async def _rage(
        self,
        random: Random,
        pause_seconds: tuple[float, float],
        strike: Callable[[Random], Awaitable[None]],
    ) -> None:
        while True:
            await asyncio.sleep(random.uniform(*pause_seconds))
            with suppress(StorageError, psycopg.Error):
                await strike(random)

    async def _strike_worker(self, random: Random) -> None:
        worker = random.choice(self._crew.workers)
        kills = random.random() < 0.5
        if worker.strike(signal.SIGKILL if kills else signal.SIGSTOP):
            self._counts["worker killed" if kills else "worker frozen"] += 1

    async def _strike_database(self, random: Random) -> None:
        self._counts[await self._database.disturb(random)] += 1

    async def _stop_writes(self, random: Random) -> None:
        tenant = random.choice((None, *TENANTS))
        await self._switches.stop(_BY, "a soak", tenant=tenant)
        since = time.time()
        self._counts["writes stopped"] += 1
        is_long = random.random() < LONG_STOP_CHANCE
        await asyncio.sleep(LONG_STOP_SECONDS if is_long else random.uniform(*STOPPED_SECONDS))
        self.stops.append(Stop(tenant=tenant, since=since, until=time.time()))
        await self._allow(tenant)

    async def _allow(self, tenant: str | None) -> None:
        """Allow writes again, however often the database fails."""
        while True:
            with suppress(StorageError):
                await self._switches.allow(_BY, tenant=tenant)
                return
            await asyncio.sleep(0.1)
