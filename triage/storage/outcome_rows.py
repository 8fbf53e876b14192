"""What was written since some day, and what calls of models cost since then."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func, select

from triage.storage.approvals import Approvals, ApprovalSource
from triage.storage.engine import Store
from triage.storage.ledger_rows import to_record
from triage.storage.operations import OperationRecord
from triage.storage.schema import model_calls, operations
from triage.storage.transitions import OperationState

LIMIT: Final = 5_000
"""More writes than this in a report are not looked at."""
_APPLIED: Final = (OperationState.APPLIED, OperationState.RECONCILED_APPLIED)


async def some_days_ago(store: Store, days: float) -> datetime:
    """Return when it was so many days ago, by the database's clock."""
    async with store.read() as connection:
        return await store.now(connection) - timedelta(days=days)


async def applied_since(
    store: Store, operation_type: str, since: datetime
) -> tuple[OperationRecord, ...]:
    """Return the writes of a type that were applied since then, oldest first, at most `LIMIT`."""
    o = operations.c
    query = select(operations).where(
        o.operation_type == operation_type, o.state.in_(_APPLIED), o.created_at >= since
    )
    query = query.order_by(o.created_at, o.operation_key).limit(LIMIT)
    async with store.read() as connection:
        found = (await connection.execute(query)).mappings().all()
    return tuple(to_record(row) for row in found)


async def is_by_person(store: Store, record: OperationRecord) -> bool:
    """Whether somebody approved a write while it waited; one that came with the start is no act."""
    approval = await Approvals(store).get(record.operation_key, record.version)
    return approval is not None and approval.source is not ApprovalSource.START


def added_by(record: OperationRecord) -> tuple[str, ...]:
    """Return the labels that a write put on itself, as far as its receipt tells them apart."""
    try:
        before = json.loads(record.receipt or b"{}").get("before")
    except (ValueError, AttributeError):
        before = None
    there = {str(name).casefold() for name in before} if isinstance(before, list) else set()
    return tuple(label for label in record.labels if label.casefold() not in there)


async def cost_since(store: Store, since: datetime) -> int:
    """Return what all calls of models since then are charged, in millionths."""
    query = select(func.sum(model_calls.c.cost_micros)).where(model_calls.c.created_at >= since)
    async with store.read() as connection:
        return int(await connection.scalar(query) or 0)
