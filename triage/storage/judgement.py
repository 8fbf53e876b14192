"""Decides what a claim on an existing ledger row may do (pure: no database, no clock)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from triage.storage.operations import (
    Busy,
    Conflict,
    ConflictCode,
    InDoubt,
    OperationRecord,
    OperationRow,
    Redispatch,
    Reservation,
    Reserved,
    Settled,
    Timings,
)
from triage.storage.transitions import IN_DOUBT, SETTLED, OperationState

PATIENCE: Final = 2
"""So many quiet periods after a write was sent, a person is asked if it still cannot be read."""


def judge(
    record: OperationRecord, row: OperationRow, owner: str, now: datetime, timings: Timings
) -> Reservation:
    """Say what a claim gets, given the row that is there.

    Args:
        record: the row under the key, locked by the caller.
        row: what the claim wants to do.
        owner: who claims; the same attempt asking again gets the same epoch.
        now: the database's time.
        timings: the ledger's.

    Returns:
        `Reserved` with a new epoch stands for a takeover, which the caller must then write.
    """
    if record.digest != row.digest:
        return Conflict(code=ConflictCode.DIGEST_MISMATCH, state=record.state)
    if record.state in SETTLED and not _may_reopen(record, row):
        return settled(record)
    if record.state in IN_DOUBT and not redispatch(record, now, timings):
        return _in_doubt(record, now, timings)
    if row.version < record.version:
        return Conflict(code=ConflictCode.STALE_VERSION, state=record.state)
    if record.state is OperationState.RESERVED:
        return _contend(record, row, owner, now, timings)
    return _take_over(record, now, timings)


def settled(record: OperationRecord) -> Settled:
    """The answer to a repeat of a write that is over."""
    return Settled(
        state=record.state,
        receipt=record.receipt,
        receipt_digest=record.receipt_digest,
        reason=record.reason,
        owner=record.owner,
    )


def redispatch(record: OperationRecord, now: datetime, timings: Timings) -> Redispatch:
    """Say whether a write may be sent again.

    Only when a reading made after the quiet period, and not long ago, found no effect, and only
    so many times. Time alone never suffices.
    """
    if record.state is not OperationState.RECONCILED_ABSENT:
        return Redispatch(allowed=False, read_again=True)
    if exhausted(record, timings):
        return Redispatch(allowed=False, exhausted=True)
    wait = quiet_for_seconds(record, now, timings)
    if wait > 0:
        return Redispatch(allowed=False, read_again=True, retry_after_seconds=wait)
    oldest = now - timedelta(seconds=timings.lease_seconds)
    fresh = record.read_back_at is not None and record.read_back_at >= oldest
    return Redispatch(allowed=fresh, read_again=not fresh)


def quiet_for_seconds(record: OperationRecord, now: datetime, timings: Timings) -> float:
    """How long a reading that finds nothing still proves nothing."""
    return _seconds_until(record, now, timings.quiet_period_seconds)


def patience_seconds(record: OperationRecord, now: datetime, timings: Timings) -> float:
    """How long a tracker that does not answer is asked again, before a person is."""
    return _seconds_until(record, now, PATIENCE * timings.quiet_period_seconds)


def _seconds_until(record: OperationRecord, now: datetime, after_seconds: float) -> float:
    if record.dispatched_at is None:
        return 0.0
    over = record.dispatched_at + timedelta(seconds=after_seconds)
    return max(0.0, (over - now).total_seconds())


def exhausted(record: OperationRecord, timings: Timings) -> bool:
    """Whether the write was sent as often as it may be."""
    return record.dispatches > timings.max_redispatch


def lease_end(now: datetime, timings: Timings) -> datetime:
    """Until when a claim made now holds."""
    return now + timedelta(seconds=timings.lease_seconds)


def _may_reopen(record: OperationRecord, row: OperationRow) -> bool:
    return record.state is OperationState.CANCELLED and row.version > record.version


def _contend(
    record: OperationRecord, row: OperationRow, owner: str, now: datetime, timings: Timings
) -> Reservation:
    if record.not_before is not None and record.not_before > now:
        return Busy(retry_after_seconds=(record.not_before - now).total_seconds())
    if record.lease_until <= now:
        return _take_over(record, now, timings)
    if (record.owner, record.version) == (owner, row.version):
        return Reserved(
            epoch=record.epoch, lease_until=record.lease_until, dispatches=record.dispatches
        )
    return Busy(retry_after_seconds=(record.lease_until - now).total_seconds())


def _take_over(record: OperationRecord, now: datetime, timings: Timings) -> Reserved:
    return Reserved(
        epoch=record.epoch + 1,
        lease_until=lease_end(now, timings),
        taken_over=True,
        dispatches=record.dispatches,
    )


def _in_doubt(record: OperationRecord, now: datetime, timings: Timings) -> InDoubt:
    return InDoubt(
        state=record.state,
        epoch=record.epoch,
        dispatched_at=record.dispatched_at or record.updated_at,
        quiet_for_seconds=quiet_for_seconds(record, now, timings),
        exhausted=exhausted(record, timings),
        patience_seconds=patience_seconds(record, now, timings),
    )
