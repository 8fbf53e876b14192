"""Requests that were accepted and are to be started: taken by one process at a time.

Why it exists: an accepted request must be started although the server was away, or the process died
in between. A row is held for a lease, so whoever takes over a dead holder's row repeats at worst
what it did; and the versions of one issue are taken in their order, one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Integer, cast, exists, func, or_, select, update
from sqlalchemy.engine import RowMapping

from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.rows import first_row
from triage.storage.schema import requests

DEFAULT_LEASE_SECONDS: Final = 20.0
"""Longer than an attempt takes, shorter than anybody wants to wait after a kill."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """A request that this process holds.

    Attributes:
        request_key: which one.
        attempts: how often it was taken, this time included; only the last one may conclude it.
        document_digest: what to start it with; empty if there is nothing.
        predecessor: the workflow id of the run that took the issue's text before; None without one.
    """

    request_key: str
    attempts: int
    document_digest: str
    predecessor: str | None


class Outbox:
    """The accepted requests of one store.

    Args:
        store: where they are.
        lease_seconds: how long one is held.
    """

    def __init__(self, store: Store, lease_seconds: float = DEFAULT_LEASE_SECONDS) -> None:
        self._store = store
        self._lease = timedelta(seconds=lease_seconds)

    async def take(self) -> Held | None:
        """Hold the request that has waited longest, or return None if none is due."""
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            r = requests.c
            found = await first_row(connection, _due(now))
            if found is None:
                return None
            attempts = found["attempts"] + 1
            await connection.execute(
                update(requests)
                .where(r.request_key == found["request_key"])
                .values(attempts=attempts, next_attempt_at=now + self._lease, updated_at=now)
            )
            return Held(
                request_key=found["request_key"],
                attempts=attempts,
                document_digest=found["document_digest"] or "",
                predecessor=await _predecessor(connection, found),
            )

    async def started(self, held: Held, workflow_id: str, run_id: str | None) -> bool:
        """Record which run has it; False if somebody else holds it by now."""
        return await self._conclude(
            held, state="started", workflow_id=workflow_id, run_id=run_id, code=None
        )

    async def failed(self, held: Held, code: str) -> bool:
        """Record that it can never be started; likewise."""
        return await self._conclude(held, state="failed", code=code)

    async def later(self, held: Held, code: str, seconds: float) -> bool:
        """Let go of it for some seconds; likewise."""
        return await self._conclude(held, code=code, wait=timedelta(seconds=seconds))

    async def _conclude(self, held: Held, *, wait: timedelta | None = None, **values: Any) -> bool:  # noqa: ANN401 - column values
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            due = None if wait is None else now + wait
            r = requests.c
            mine = (
                r.request_key == held.request_key,
                r.state == "accepted",
                r.attempts == held.attempts,
            )
            done = await connection.execute(
                update(requests).where(*mine).values(**values, next_attempt_at=due, updated_at=now)
            )
        return done.rowcount == 1


def _due(now: Any) -> Any:  # noqa: ANN401 - a time, and a query of any rows
    r, earlier = requests.c, requests.alias("earlier")
    blocked = exists(
        select(earlier.c.request_key).where(
            earlier.c.subject_key == r.subject_key,
            earlier.c.state == "accepted",
            earlier.c.version < r.version,
        )
    )
    # No time is read here, and a number is one: a row that somebody edited holds up no other.
    attempts = cast(r.attempts, Integer).label("attempts")
    return (
        select(r.request_key, r.subject_key, r.version, r.document_digest, attempts)
        .where(
            r.state == "accepted",
            or_(r.next_attempt_at.is_(None), r.next_attempt_at <= now),
            ~blocked,
        )
        # Since it was put off, if it was: one that fails each time is behind what came since.
        .order_by(func.coalesce(r.next_attempt_at, r.created_at), r.request_key)
        .limit(1)
        .with_for_update(skip_locked=True)
    )


async def _predecessor(connection: AsyncConnection, found: RowMapping) -> str | None:
    r = requests.c
    query = (
        select(r.workflow_id)
        .where(
            r.subject_key == found["subject_key"],
            r.state == "started",
            r.version < found["version"],
        )
        .order_by(r.version.desc())
        .limit(1)
    )
    before = await first_row(connection, query)
    return None if before is None else before["workflow_id"]
