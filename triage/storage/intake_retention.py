"""Removes what deliveries left, once it is old enough that nothing can come again.

What an issue's newest text is, and which run has it, is never removed: without it the same text
would be new. Waiting answers and requests that were not started yet stay, too.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Table, delete, select

from triage.storage.engine import Store
from triage.storage.schema import deliveries, requests
from triage.storage.schema_intake import commands


async def purge_intake(store: Store, before: datetime, limit: int = 500) -> int:
    """Remove deliveries, answers and overtaken requests that are older than `before`.

    Args:
        store: where they are.
        before: must lie further back than GitHub sends deliveries again: three days.
        limit: at most so many of each kind, each kind in one transaction.

    Returns:
        How many rows were removed.
    """
    d, c, r = deliveries.c, commands.c, requests.c
    newer = requests.alias("newer")
    overtaken = (
        select(newer.c.request_key)
        .where(
            newer.c.subject_key == r.subject_key,
            newer.c.version > r.version,
            newer.c.state == "started",
        )
        .exists()
    )
    kinds: list[tuple[Table, Any, tuple[Any, ...]]] = [
        (deliveries, d.delivery_key, (d.received_at < before,)),
        (commands, c.command_key, (c.created_at < before, c.state != "waiting")),
        (requests, r.request_key, (r.updated_at < before, r.state != "accepted", overtaken)),
    ]
    return sum([await _purge(store, *kind, limit) for kind in kinds])


async def _purge(store: Store, table: Table, key: Any, due: tuple[Any, ...], limit: int) -> int:  # noqa: ANN401 - a column
    # Most passes find nothing, and then nobody is kept from writing.
    async with store.read() as connection:
        keys = (await connection.scalars(select(key).where(*due).limit(limit))).all()
    if not keys:
        return 0
    async with store.write() as connection:
        gone = await connection.execute(delete(table).where(key.in_(keys), *due))
    return gone.rowcount
