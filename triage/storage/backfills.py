"""Which old issues a backfill has tried, so that it goes on where it stopped.

One process at a time carries one of a repository: two would start runs at twice the pace that was
asked for. A process that was killed holds it no longer than a lease.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic import JsonValue
from sqlalchemy import func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from triage.contracts.canonical import canonical_json, short_hash
from triage.contracts.names import ACTIVITY_APPLY_LABELS
from triage.contracts.repositories import folded_repository
from triage.storage.engine import Store
from triage.storage.errors import StorageError
from triage.storage.rows import first_row, insert_first
from triage.storage.schema import operations
from triage.storage.schema_intake import backfill_items, backfills
from triage.storage.transitions import OperationState

_BEGINNING: Final = 0x6261636B66696C6C
"""Names the lock under which backfills begin."""
_APPLIED = (OperationState.APPLIED, OperationState.RECONCILED_APPLIED)


LEASE: Final = timedelta(seconds=60)
"""How long a process that says nothing more counts as alive."""


class BackfillHeldError(StorageError):
    """Another process carries a backfill of the same repository."""


class Backfills:
    """The backfills in one store.

    Args:
        store: where they are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(self, wanted: Mapping[str, JsonValue]) -> tuple[str, bool]:
        """Return the backfill of what is wanted, and whether it was begun before.

        One that is not finished goes on; after that, the same question begins a new one. It is
        held from now on, for a lease.

        Raises:
            BackfillHeldError: one of the same repository is held already.
        """
        asked = canonical_json(dict(wanted))
        key, b = short_hash("backfill", asked.decode()), backfills.c
        going = select(b.backfill_id).where(b.wanted_key == key, b.state == "running")
        async with self._store.write() as connection:
            await self._one_at_a_time(connection)
            now = await self._store.now(connection)
            await _see_that_nobody_has_it(connection, str(wanted.get("repository")), now)
            if (found := await first_row(connection, going.limit(1))) is not None:
                await _touch(connection, str(found["backfill_id"]), now)
                return str(found["backfill_id"]), True
            backfill_id = secrets.token_hex(8)
            await connection.execute(
                insert(backfills).values(
                    backfill_id=backfill_id,
                    wanted_key=key,
                    wanted=asked.decode(),
                    state="running",
                    created_at=now,
                    updated_at=now,
                )
            )
        return backfill_id, False

    async def hold(self, backfill_id: str) -> None:
        """Say that it is still carried, for another lease."""
        async with self._store.write() as connection:
            await _touch(connection, backfill_id, await self._store.now(connection))

    async def let_go(self, backfill_id: str) -> None:
        """Say that it is carried no longer: anybody may go on with it at once."""
        async with self._store.write() as connection:
            await _touch(connection, backfill_id, await self._store.now(connection) - LEASE)

    async def _one_at_a_time(self, connection: AsyncConnection) -> None:
        """Let those who begin go one after the other; SQLite has one writer anyway."""
        if not self._store.is_sqlite:
            await connection.execute(select(func.pg_advisory_xact_lock(_BEGINNING)))

    async def results(self, backfill_id: str) -> dict[str, dict[str, Any]]:
        """Return what came of the issues that were tried, by number, in the order of the tries."""
        i = backfill_items.c
        query = (
            select(i.number, i.result)
            .where(i.backfill_id == backfill_id)
            .order_by(i.created_at, i.item_key)
        )
        async with self._store.read() as connection:
            rows = (await connection.execute(query)).all()
        return {number: json.loads(result) for number, result in rows}

    async def record(self, backfill_id: str, number: str, result: Mapping[str, JsonValue]) -> None:
        """Keep what came of one issue; the first result stands."""
        async with self._store.write() as connection:
            values = {
                "item_key": short_hash("backfill-item", backfill_id, number),
                "backfill_id": backfill_id,
                "number": number,
                "result": canonical_json(dict(result)).decode(),
                "created_at": await self._store.now(connection),
            }
            await insert_first(connection, backfill_items, values)

    async def finish(self, backfill_id: str) -> None:
        """Say that there is nothing left to try."""
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            mine = backfills.c.backfill_id == backfill_id
            await connection.execute(
                update(backfills).where(mine).values(state="finished", updated_at=now)
            )


async def _touch(connection: AsyncConnection, backfill_id: str, at: datetime) -> None:
    mine = (backfills.c.backfill_id == backfill_id, backfills.c.state == "running")
    await connection.execute(update(backfills).where(*mine).values(updated_at=at))


async def _see_that_nobody_has_it(
    connection: AsyncConnection, repository: str, now: datetime
) -> None:
    b = backfills.c
    held = select(b.wanted).where(b.state == "running", b.updated_at > now - LEASE)
    wanted = folded_repository(repository)
    for asked in (await connection.execute(held)).scalars():
        try:
            is_same = folded_repository(str(json.loads(asked)["repository"])) == wanted
        except (ValueError, TypeError, KeyError):
            # Somebody edited the row, which says nothing any more.
            continue
        if is_same:
            raise BackfillHeldError("a backfill of this repository is carried by another process")


async def labels_we_wrote(store: Store, repository: str) -> dict[str, set[str]]:
    """Return the labels that operations put on a repository's issues, by the issue's number.

    The repository counts in any letters. What was undone since is ours no longer: if it is there,
    a person has put it on.
    """
    wanted = folded_repository(repository)
    o = operations.c
    query = select(o.operation_type, o.target, o.labels).where(o.state.in_(_APPLIED))
    async with store.read() as connection:
        rows = (await connection.execute(query.order_by(o.updated_at))).all()
    written: dict[str, set[str]] = {}
    for kind, target, labels in rows:
        try:
            where, names = json.loads(target), set(json.loads(labels))
            repository, issue = str(where["repository"]), str(where["issue"])
        except (ValueError, TypeError, KeyError):
            # Somebody edited the row, which says nothing any more.
            continue
        if folded_repository(repository) == wanted:
            ours = written.setdefault(issue, set())
            written[issue] = ours | names if kind == ACTIVITY_APPLY_LABELS else ours - names
    return written
