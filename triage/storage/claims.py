"""A claim on a write: the row is made or taken over, and its approval kept, in one transaction."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import JsonValue
from sqlalchemy import delete

from triage.storage.approvals import ApprovalRow, RefusalCode, decide_first, refusal_of
from triage.storage.audit import AuditEntry, append_all
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.errors import StorageUnavailable
from triage.storage.judgement import judge, lease_end
from triage.storage.ledger_rows import locked, move, move_entry, purged, to_values
from triage.storage.operations import (
    Conflict,
    ConflictCode,
    OperationRecord,
    OperationRow,
    Reservation,
    Reserved,
    Settled,
    Timings,
)
from triage.storage.rows import insert_first
from triage.storage.schema import operations
from triage.storage.transitions import OperationState


class RefusedError(Exception):
    """Ends the transaction of a claim whose approval does not hold, so that nothing is kept."""

    def __init__(self, code: RefusalCode) -> None:
        super().__init__(code)
        self.code = code


async def claim(
    store: Store,
    connection: AsyncConnection,
    timings: Timings,
    row: OperationRow,
    approval: ApprovalRow,
    owner: str,
) -> Reservation:
    """Claim `row` for `owner` in the caller's transaction.

    Raises:
        RefusedError: the approval does not hold; the caller's transaction must not be committed.
    """
    now = await store.now(connection)
    if await insert_first(connection, operations, _first_values(row, owner, now, timings)):
        return await _first_claim(connection, row, approval, owner, now, timings)
    record = await locked(connection, row.operation_key)
    if record is None:  # purged at this moment
        if (over := await _purged_answer(connection, row)) is not None:
            return over
        raise StorageUnavailable("the operation vanished while it was claimed: try again")
    now = await store.now(connection)
    answer = judge(record, row, owner, now, timings)
    if isinstance(answer, Reserved) and answer.taken_over:
        entries = await _hold_approval(connection, row, approval, now)
        if entries:
            await append_all(connection, entries)
        await _take_over(connection, record, row, owner, answer, now)
    return answer


async def _first_claim(
    connection: AsyncConnection,
    row: OperationRow,
    approval: ApprovalRow,
    owner: str,
    now: datetime,
    timings: Timings,
) -> Reservation:
    """Finish a claim whose row was just inserted, unless the write was done and purged before."""
    # Only now: a purge that ended while we inserted has left its tombstone for us to see.
    if (over := await _purged_answer(connection, row)) is not None:
        key = operations.c.operation_key == row.operation_key
        await connection.execute(delete(operations).where(key))
        return over
    entries = await _hold_approval(connection, row, approval, now)
    told: dict[str, JsonValue] = {"epoch": 1, "owner": owner}
    entries.append(move_entry(row, OperationState.RESERVED, now, told))
    await append_all(connection, entries)
    return Reserved(epoch=1, lease_until=lease_end(now, timings))


async def _purged_answer(
    connection: AsyncConnection, row: OperationRow
) -> Settled | Conflict | None:
    left = await purged(connection, row.operation_key)
    if left is None:
        return None
    digest, over = left
    if digest != row.digest:
        return Conflict(code=ConflictCode.DIGEST_MISMATCH, state=over.state)
    return over


async def _take_over(
    connection: AsyncConnection,
    record: OperationRecord,
    row: OperationRow,
    owner: str,
    claimed: Reserved,
    now: datetime,
) -> None:
    values = {
        "epoch": claimed.epoch,
        "owner": owner,
        "lease_until": claimed.lease_until,
        "version": row.version,
        "not_before": None,
        "reason": None,
        "attention_owner": None,
        "attention_at": None,
    }
    await move(connection, record, OperationState.RESERVED, now, values)


async def _hold_approval(
    connection: AsyncConnection, row: OperationRow, approval: ApprovalRow, now: datetime
) -> list[AuditEntry]:
    """Keep the decision, see that the one that stands allows this write now, and say what to audit.

    The entry of a decision that is new is left to the caller: another one follows it.
    """
    wanted = (row.operation_key, row.version, row.digest)
    if (approval.operation_key, approval.version, approval.operation_digest) != wanted:
        raise RefusedError(RefusalCode.DIGEST_MISMATCH)
    stands, entry = await decide_first(connection, approval, row.tenant, now)
    if stands is None:
        raise RefusedError(RefusalCode.TOKEN_REPLAYED)
    refusal = refusal_of(stands, row.operation_key, row.digest, now)
    if refusal is None and stands.digest != approval.digest:
        refusal = RefusalCode.DIGEST_MISMATCH
    if refusal is not None:
        raise RefusedError(refusal)
    return [] if entry is None else [entry]


def _first_values(row: OperationRow, owner: str, now: datetime, timings: Timings) -> dict[str, Any]:
    return {
        **to_values(row),
        "state": OperationState.RESERVED,
        "epoch": 1,
        "owner": owner,
        "lease_until": lease_end(now, timings),
        "dispatches": 0,
        "created_at": now,
        "updated_at": now,
    }
