"""Writes that perhaps no run carries on any more: which they are, and how an absent one ends.

Why it exists: the activity that settles a write belongs to a run, and a run can be terminated at
any moment. What it leaves behind is found here by its row alone. Nothing here ever makes a write
executable: whoever wants to send an absent one again has to read the far end first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, or_, update

from triage.storage.audit import AuditEntry, append
from triage.storage.engine import Store
from triage.storage.judgement import quiet_for_seconds
from triage.storage.ledger_listing import UnreadableOperation, record_of
from triage.storage.ledger_rows import locked, move
from triage.storage.operations import MoveCode, Moved, OperationRecord, Timings
from triage.storage.raw import decoded, select_raw
from triage.storage.schema import operations
from triage.storage.transitions import OperationState, may_move

_S = OperationState

OVER: Final = frozenset({_S.FAILED, _S.CANCELLED})
"""Nothing was done, nor will be: a reading has nothing to find, but a person may have to look."""


@dataclass(frozen=True, kw_only=True)
class Closing:
    """How an absent write is left.

    Attributes:
        reason: why nobody sends it again.
        owner: who has to look at it or, without `attention`, who did.
        attention: whether somebody has to.
    """

    reason: str
    owner: str
    attention: bool


async def find_leftovers(
    store: Store, *, after: str = "", limit: int = 200
) -> tuple[OperationRecord | UnreadableOperation, ...]:
    """Return unsettled writes that no attempt holds, in the order of their keys.

    A row that somebody edited so that it cannot be read is among them, and hides no other.

    Whether their runs still live is not known here. A write that was found absent is among them
    until somebody was told or has looked.

    Args:
        store: where the ledger is.
        after: only keys after this one.
        limit: at most so many.
    """
    o = operations.c
    async with store.read() as connection:
        now = await store.now(connection)
        query = select_raw(operations, sqlite=store.is_sqlite)
        query = query.where(o.operation_key > after, _left(now))
        rows = await connection.execute(query.order_by(o.operation_key).limit(limit))
        found = rows.mappings().all()
    read = (decoded(operations, row, sqlite=store.is_sqlite) for row in found)
    return tuple(record_of(row) for row in read)


async def close_absent(
    store: Store, timings: Timings, operation_key: str, epoch: int, closing: Closing
) -> Moved:
    """Record that a reading found no effect, and that nobody sends this write again.

    The reading counts for nobody else: a run that comes back must make its own.

    Returns:
        `TOO_EARLY` inside the quiet period: the row stays as it was. `ILLEGAL` also when a person
        is to be told who was told already, or has looked.
    """
    async with store.write() as connection:
        record = await locked(connection, operation_key)
        if record is None:
            return Moved(code=MoveCode.MISSING)
        if record.epoch != epoch:
            return Moved(code=MoveCode.FENCED, state=record.state)
        if not may_move(record.state, _S.RECONCILED_ABSENT) or _is_known(record, closing):
            return Moved(code=MoveCode.ILLEGAL, state=record.state)
        now = await store.now(connection)
        if (wait := quiet_for_seconds(record, now, timings)) > 0:
            return Moved(code=MoveCode.TOO_EARLY, state=record.state, retry_after_seconds=wait)
        await move(connection, record, _S.RECONCILED_ABSENT, now, _values(closing, now))
    return Moved(code=MoveCode.DONE, state=_S.RECONCILED_ABSENT)


async def acknowledge(store: Store, operation_key: str, by: str) -> Moved:
    """Record that a person has looked at a write that failed or was given up; it stays what it is.

    Returns:
        `ILLEGAL` for any other write, and for one about which nobody is asked.
    """
    async with store.write() as connection:
        record = await locked(connection, operation_key)
        if record is None:
            return Moved(code=MoveCode.MISSING)
        if record.state not in OVER or record.attention_at is None:
            return Moved(code=MoveCode.ILLEGAL, state=record.state)
        now = await store.now(connection)
        await connection.execute(
            update(operations)
            .where(operations.c.operation_key == operation_key)
            .values(attention_at=None, attention_owner=by, updated_at=now)
        )
        entry = AuditEntry(
            tenant=record.tenant,
            kind="operation.acknowledged",
            subject=operation_key,
            at=now,
            details={"by": by, "state": record.state.value, "epoch": record.epoch},
        )
        await append(connection, entry)
    return Moved(code=MoveCode.DONE, state=record.state)


def _is_known(record: OperationRecord, closing: Closing) -> bool:
    absent = record.state is _S.RECONCILED_ABSENT
    return closing.attention and absent and record.attention_owner is not None


def _left(now: datetime) -> ColumnElement[bool]:
    o = operations.c
    # An owner without a time: somebody has looked, and that was that.
    untold = and_(o.attention_at.is_(None), o.attention_owner.is_(None))
    return or_(
        and_(o.state.in_((_S.RESERVED, _S.DISPATCHED)), o.lease_until <= now),
        o.state == _S.UNKNOWN,
        and_(o.state == _S.RECONCILED_ABSENT, untold),
    )


def _values(closing: Closing, now: datetime) -> dict[str, Any]:
    return {
        "reason": closing.reason,
        "attention_owner": closing.owner,
        "attention_at": now if closing.attention else None,
        "read_back_at": None,
    }
