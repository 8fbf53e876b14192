"""The operations ledger: a write happens once, whatever is killed, frozen or sent again.

Why it exists: Temporal runs an activity again while an earlier attempt may still be running. So the
right to act is not the activity's: it is a row here, held under an epoch, and every move names the
epoch that it belongs to. No transaction is open while the far end is being called.

How a write goes: `reserve`, `dispatch`, call the far end, `settle`; after a call without an answer,
`mark_unknown`, read the far end, `reconcile`. Each move is audited in its own transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import select

from triage.contracts.canonical import digest_of, digest_of_bytes
from triage.faults import Point, reach
from triage.storage.approvals import ApprovalRow, find_approval, refusal_of
from triage.storage.approvers import use_approvals
from triage.storage.claims import RefusedError, claim
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.evidence import EvidenceRow, keep_evidence
from triage.storage.judgement import lease_end, quiet_for_seconds
from triage.storage.ledger_rows import flag, locked, move, to_record, unlocked, unreadable_named
from triage.storage.operations import (
    MoveCode,
    Moved,
    OperationRecord,
    OperationRow,
    Refused,
    Reservation,
    Timings,
)
from triage.storage.schema import MAX_RECEIPT_BYTES, operations
from triage.storage.transitions import OperationState, may_move

MAX_REASON_CHARS: Final = 500

_S = OperationState
_Act = Callable[[AsyncConnection, OperationRecord, datetime], Awaitable[Moved]]


class Ledger:
    """The ledger over one store.

    Args:
        store: where it is kept.
        lease_seconds: how long a claim holds; longer than a call to the far end may take.
        quiet_period_seconds: longer than a call may still take effect after it was sent.
        max_redispatch: how often a write that was read back as absent may be sent again.
    """

    def __init__(
        self,
        store: Store,
        *,
        lease_seconds: float = 60.0,
        quiet_period_seconds: float = 120.0,
        max_redispatch: int = 2,
    ) -> None:
        self._store = store
        self.timings = Timings(lease_seconds, quiet_period_seconds, max_redispatch)

    async def reserve(
        self, row: OperationRow, approval: ApprovalRow, *, owner: str | None = None
    ) -> Reservation:
        """Claim a write and keep its approval, in one transaction.

        Args:
            row: the write.
            approval: the decision that allows it. An earlier decision on the same operation at the
                same version stands instead, and then the reviewed digests must be equal.
            owner: names the attempt: asking again under the same name while the lease holds gives
                the same epoch, which is how a claim whose commit was cut is found again.

        Returns:
            Only after `Reserved` may the caller go on to `dispatch`.
        """
        reach(Point.LEDGER_BEFORE, "reserve")
        try:
            async with self._store.write() as connection:
                answer = await claim(
                    self._store, connection, self.timings, row, approval, owner or uuid4().hex
                )
        except RefusedError as refused:
            return Refused(code=refused.code)
        reach(Point.LEDGER_AFTER, "reserve")
        return answer

    async def dispatch(self, operation_key: str, epoch: int, *, approvals: int = 1) -> Moved:
        """Use up the approval and record that an effect is possible from now on.

        Of a write that needs several `approvals`, so many people's must be on the audit trail.

        Returns:
            True only if the caller may call the far end now, once, before the lease ends.
        """

        async def act(connection: AsyncConnection, record: OperationRecord, now: datetime) -> Moved:
            if record.state is not _S.RESERVED:
                return _illegal(record)
            if record.lease_until <= now:
                return Moved(code=MoveCode.LEASE_EXPIRED, state=record.state)
            refusal = await use_approvals(connection, record, approvals, now)
            if refusal is not None:
                return Moved(code=MoveCode.NOT_APPROVED, state=record.state, refusal=refusal)
            values = {
                "dispatched_at": now,
                "dispatches": record.dispatches + 1,
                "lease_until": lease_end(now, self.timings),
                "not_before": None,
                "read_back_at": None,
            }
            return await _go(connection, record, _S.DISPATCHED, now, values)

        return await self._step("dispatch", operation_key, epoch, act)

    async def still_holds(self, operation_key: str, epoch: int) -> Moved:
        """Look again, right before the first byte: epoch, lease and approval; changes nothing."""
        async with self._store.read() as connection:
            now = await self._store.now(connection)
            record = await unlocked(connection, operation_key)
            if record is None or record.epoch != epoch:
                return _absent_or_fenced(record)
            if record.state is not _S.DISPATCHED:
                return _illegal(record)
            if record.lease_until <= now:
                return Moved(code=MoveCode.LEASE_EXPIRED, state=record.state)
            stands = await find_approval(connection, operation_key, record.version)
            refusal = refusal_of(stands, operation_key, record.digest, now)
        code = MoveCode.DONE if refusal is None else MoveCode.NOT_APPROVED
        return Moved(code=code, state=record.state, refusal=refusal)

    async def settle(
        self,
        operation_key: str,
        epoch: int,
        outcome: OperationState,
        receipt: bytes,
        reason: str = "",
        *,
        attention_owner: str | None = None,
        evidence: EvidenceRow | None = None,
    ) -> Moved:
        """Record a definite answer: `applied`, or `failed` (nothing was done, nor will be).

        Saying the same again is fine. An effect seen by an attempt whose write somebody else has
        marked unknown meanwhile is recorded as `reconciled_applied`. With an `attention_owner` that
        person is asked to look, too. `evidence` is kept with what is recorded, or not at all.

        Raises:
            ValueError: another outcome, or a receipt of over 4,096 bytes.
        """
        if outcome not in {_S.APPLIED, _S.FAILED}:
            raise ValueError("a write settles as applied or failed")
        values = _receipt_values(receipt) | _reason_values(reason)

        async def act(connection: AsyncConnection, record: OperationRecord, now: datetime) -> Moved:
            target = _S(outcome)
            if target is _S.APPLIED and record.state in _READ_BACK:
                target = _S.RECONCILED_APPLIED
            is_repeat = record.state is target and record.receipt == receipt
            if evidence is not None and (is_repeat or may_move(record.state, target)):
                # Before the audit chain is locked.
                await keep_evidence(connection, evidence, now)
            if is_repeat:
                return _done(record)
            told = _attention_values(attention_owner, now)
            return await _go(connection, record, target, now, values | told)

        return await self._step("settle", operation_key, epoch, act)

    async def mark_unknown(self, operation_key: str, epoch: int, reason: str = "") -> Moved:
        """Record that a call got no answer. Only reading the far end leads on from here."""

        async def act(connection: AsyncConnection, record: OperationRecord, now: datetime) -> Moved:
            if record.state is _S.UNKNOWN:
                return _done(record)
            return await _go(connection, record, _S.UNKNOWN, now, _reason_values(reason))

        return await self._step("mark_unknown", operation_key, epoch, act)

    async def reconcile(
        self, operation_key: str, epoch: int, *, present: bool, receipt: bytes | None = None
    ) -> Moved:
        """Record what a reading of the far end found, after `mark_unknown`.

        Args:
            operation_key: the operation.
            epoch: the one that `reserve` or `get` named.
            present: whether the whole effect is there.
            receipt: what to answer from now on; needed when present.

        Returns:
            `TOO_EARLY` for an absence inside the quiet period: the row stays as it was.

        Raises:
            ValueError: present without a receipt, or a receipt of over 4,096 bytes.
        """
        if present and receipt is None:
            raise ValueError("an effect that was found needs a receipt")
        found = _receipt_values(receipt) if present and receipt is not None else {}

        async def act(connection: AsyncConnection, record: OperationRecord, now: datetime) -> Moved:
            if present:
                if record.state is _S.RECONCILED_APPLIED and record.receipt == receipt:
                    return _done(record)
                return await _go(connection, record, _S.RECONCILED_APPLIED, now, found | _CLEARED)
            wait = quiet_for_seconds(record, now, self.timings)
            if wait > 0 and may_move(record.state, _S.RECONCILED_ABSENT):
                return Moved(code=MoveCode.TOO_EARLY, state=record.state, retry_after_seconds=wait)
            values = {"read_back_at": now} | _CLEARED
            return await _go(connection, record, _S.RECONCILED_ABSENT, now, values)

        return await self._step("reconcile", operation_key, epoch, act)

    async def release(
        self, operation_key: str, epoch: int, *, retry_after_seconds: float, reason: str = ""
    ) -> Moved:
        """Take a dispatched write back on the far end's word that it did nothing (a rate limit).

        The next claim waits for `retry_after_seconds`. It counts as a dispatch: once they are used
        up, the write is `failed` instead, as the returned state tells.
        """

        async def act(connection: AsyncConnection, record: OperationRecord, now: datetime) -> Moved:
            if record.state is not _S.DISPATCHED:
                return _illegal(record)
            if record.dispatches > self.timings.max_redispatch:
                return await _go(connection, record, _S.FAILED, now, _reason_values(reason))
            wait = timedelta(seconds=retry_after_seconds)
            values = {"lease_until": now, "not_before": now + wait} | _reason_values(reason)
            return await _go(connection, record, _S.RESERVED, now, values)

        return await self._step("release", operation_key, epoch, act)

    async def cancel(
        self,
        operation_key: str,
        epoch: int,
        reason: str = "",
        *,
        attention_owner: str | None = None,
    ) -> Moved:
        """Give up a reserved write, before any effect was possible.

        With an `attention_owner` that person is asked to look, too.
        """

        async def act(connection: AsyncConnection, record: OperationRecord, now: datetime) -> Moved:
            if record.state is _S.CANCELLED:
                return _done(record)
            values = _reason_values(reason) | _attention_values(attention_owner, now)
            return await _go(connection, record, _S.CANCELLED, now, values)

        return await self._step("cancel", operation_key, epoch, act)

    async def attention(
        self, operation_key: str, reason: str, owner: str, *, epoch: int | None = None
    ) -> Moved:
        """Ask a person to look: with a reason, and who that is.

        An unknown or absent write moves to `attention`, and so does a reserved one that was sent
        before, a part of which may be done; a failed one keeps its state and is listed all the
        same. Any other state is refused. With an `epoch`, nothing is moved under another one.
        """
        values: dict[str, Any] = {"attention_owner": owner[:MAX_REASON_CHARS]}
        values |= _reason_values(reason)

        async def act(connection: AsyncConnection, record: OperationRecord, now: datetime) -> Moved:
            told = values | {"attention_at": record.attention_at or now}
            if record.state in {_S.FAILED, _S.ATTENTION}:
                await flag(connection, record, now, told)
                return _done(record)
            if record.state is _S.RESERVED and not record.dispatches:
                return _illegal(record)
            return await _go(connection, record, _S.ATTENTION, now, told)

        return await self._step("attention", operation_key, epoch, act)

    async def get(self, operation_key: str) -> OperationRecord | None:
        """Return one operation, unless there is none or it was purged.

        Raises:
            StorageUnreadable: somebody edited its row.
        """
        async with self._store.read() as connection:
            return await unlocked(connection, operation_key)

    async def list(
        self,
        *,
        attention_only: bool = False,
        workflow_id: str | None = None,
        states: Collection[OperationState] | None = None,
        limit: int = 1000,
    ) -> tuple[OperationRecord, ...]:
        """Return operations, oldest first; `list_readable` is for people, and names edited rows.

        Args:
            attention_only: only those that a person has to look at.
            workflow_id: only those of this run.
            states: only those in one of these states.
            limit: at most so many.

        Raises:
            StorageUnreadable: somebody edited one of the rows.
        """
        o = operations.c
        query = select(operations).order_by(o.created_at, o.operation_key).limit(limit)
        if attention_only:
            query = query.where(o.attention_at.is_not(None))
        if workflow_id is not None:
            query = query.where(o.workflow_key == digest_of(workflow_id))
        if states is not None:
            query = query.where(o.state.in_(states))
        async with self._store.read() as connection:
            with unreadable_named():
                found = (await connection.execute(query)).mappings().all()
                return tuple(to_record(row) for row in found)

    async def _step(self, name: str, operation_key: str, epoch: int | None, act: _Act) -> Moved:
        reach(Point.LEDGER_BEFORE, name)
        moved = await self._moved(operation_key, epoch, act)
        reach(Point.LEDGER_AFTER, name)
        return moved

    async def _moved(self, operation_key: str, epoch: int | None, act: _Act) -> Moved:
        async with self._store.write() as connection:
            record = await locked(connection, operation_key)
            if record is None or epoch not in {None, record.epoch}:
                return _absent_or_fenced(record)
            # After the lock was had, which may have taken a while.
            now = await self._store.now(connection)
            return await act(connection, record, now)


_READ_BACK: Final = {_S.UNKNOWN, _S.RECONCILED_ABSENT, _S.RECONCILED_APPLIED, _S.ATTENTION}
_CLEARED: Final[dict[str, Any]] = {"attention_at": None, "attention_owner": None}


async def _go(
    connection: AsyncConnection,
    record: OperationRecord,
    target: OperationState,
    now: datetime,
    values: dict[str, Any],
) -> Moved:
    if not may_move(record.state, target):
        return _illegal(record)
    await move(connection, record, target, now, values)
    return Moved(code=MoveCode.DONE, state=target)


def _absent_or_fenced(record: OperationRecord | None) -> Moved:
    if record is None:
        return Moved(code=MoveCode.MISSING)
    return Moved(code=MoveCode.FENCED, state=record.state)


def _illegal(record: OperationRecord) -> Moved:
    return Moved(code=MoveCode.ILLEGAL, state=record.state)


def _done(record: OperationRecord) -> Moved:
    return Moved(code=MoveCode.DONE, state=record.state)


def _receipt_values(receipt: bytes) -> dict[str, Any]:
    if len(receipt) > MAX_RECEIPT_BYTES:
        raise ValueError(f"a receipt has at most {MAX_RECEIPT_BYTES} bytes")
    return {"receipt": receipt, "receipt_digest": digest_of_bytes(receipt)}


def _attention_values(owner: str | None, now: datetime) -> dict[str, Any]:
    if owner is None:
        return {}
    return {"attention_owner": owner[:MAX_REASON_CHARS], "attention_at": now}


def _reason_values(reason: str) -> dict[str, Any]:
    return {"reason": reason[:MAX_REASON_CHARS] or None}
