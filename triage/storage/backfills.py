"""Which old issues a backfill has tried, so that it goes on where it stopped."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue
from sqlalchemy import insert, select, update

from triage.contracts.canonical import canonical_json, short_hash
from triage.contracts.names import ACTIVITY_APPLY_LABELS
from triage.contracts.repositories import folded_repository
from triage.storage.engine import Store
from triage.storage.rows import first_row, insert_first
from triage.storage.schema import operations
from triage.storage.schema_intake import backfill_items, backfills
from triage.storage.transitions import OperationState

_APPLIED = (OperationState.APPLIED, OperationState.RECONCILED_APPLIED)


class Backfills:
    """The backfills in one store.

    Args:
        store: where they are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(self, wanted: Mapping[str, JsonValue]) -> tuple[str, bool]:
        """Return the backfill of what is wanted, and whether it was begun before.

        One that is not finished goes on; after that, the same question begins a new one.
        """
        asked = canonical_json(dict(wanted))
        key, b = short_hash("backfill", asked.decode()), backfills.c
        going = select(b.backfill_id).where(b.wanted_key == key, b.state == "running")
        async with self._store.write() as connection:
            if (found := await first_row(connection, going.limit(1))) is not None:
                return str(found["backfill_id"]), True
            now = await self._store.now(connection)
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
