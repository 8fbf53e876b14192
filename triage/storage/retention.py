"""Removes old settled writes, and leaves of each what keeps it from happening again.

A tombstone holds the key, the digest, the state and the receipt's digest, for ever: a repeat that
arrives years later is answered from it. Writes in doubt, and those that a person has to look at,
are never removed.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, insert

from triage.storage.audit import AuditEntry, append
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.ledger_listing import record_of
from triage.storage.operations import OperationRecord
from triage.storage.raw import decoded, select_raw
from triage.storage.schema import operation_tombstones, operations
from triage.storage.transitions import SETTLED


async def purge_settled(store: Store, before: datetime, limit: int = 500) -> int:
    """Replace settled writes that last moved before `before` by tombstones, and audit that.

    Args:
        store: where the ledger is.
        before: must lie further back than approvals, webhook redelivery and the namespace's
            retention reach.
        limit: at most so many, in one transaction.

    Returns:
        How many were replaced. A row that somebody edited so that it cannot be read stays.
    """
    o = operations.c
    due = (
        select_raw(operations, sqlite=store.is_sqlite)
        .where(o.state.in_(SETTLED), o.updated_at < before, o.attention_at.is_(None))
        .order_by(o.operation_key)
        .limit(limit)
        .with_for_update()
    )
    async with store.write() as connection:
        rows = (await connection.execute(due)).mappings().all()
        now = await store.now(connection)
        read = (decoded(operations, row, sqlite=store.is_sqlite) for row in rows)
        found = [record for row in read if isinstance(record := record_of(row), OperationRecord)]
        for record in found:
            await _bury(connection, record, now)
    return len(found)


async def _bury(connection: AsyncConnection, record: OperationRecord, now: datetime) -> None:
    left = {
        "digest": record.digest,
        "state": record.state,
        "receipt_digest": record.receipt_digest,
    }
    await connection.execute(
        insert(operation_tombstones).values(
            operation_key=record.operation_key, purged_at=now, **left
        )
    )
    await connection.execute(
        delete(operations).where(operations.c.operation_key == record.operation_key)
    )
    entry = AuditEntry(
        tenant=record.tenant,
        kind="operation.purged",
        subject=record.operation_key,
        at=now,
        details=left,
    )
    await append(connection, entry)
