"""Takes back what one write put on an issue, once, through the ledger.

Why it exists: an undo is a write of its own, with an approval, a place in the ledger and a receipt.
It takes labels off one by one, by requests that name them, and stops at the first that is not
clearly done. What it cannot say it leaves as unknown: whoever settles writes reads the issue.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Final, TypeVar

from triage.contracts.canonical import canonical_json, digest_of, short_hash
from triage.storage.approvals import ApprovalRow
from triage.storage.ledger import Ledger
from triage.storage.operations import (
    OperationRecord,
    OperationRow,
    Reserved,
    Settled,
)
from triage.storage.receipts import Receipt
from triage.storage.switches import Switches
from triage.storage.transitions import OperationState
from triage.trackers.abilities import Removal
from triage.trackers.base import (
    UNCERTAIN_CODES,
    Tracker,
    TrackerError,
    TrackerRefused,
    TrackerTimeout,
    TrackerUnavailable,
    has_labels,
)
from triage.trackers.reading import read_issue
from triage.trackers.undo_plan import (
    APPLIED,
    UNDOES,
    UndoPlan,
    own_write,
    plan_undo,
    target_of,
    undoing_tracker,
)
from triage.trackers.undo_reading import is_partly_done

Found = TypeVar("Found")

OWNER: Final = "operations"
_S = OperationState
_OVER: Final = frozenset({_S.FAILED, _S.CANCELLED, _S.RECONCILED_ABSENT})
"""Nothing was taken off, so it may be tried anew; so may the rest of one that was done in part."""


class Ending(StrEnum):
    """What became of an undo."""

    DONE = "done"
    DONE_BEFORE = "done_before"
    CHANGED = "changed"
    """The issue is not what was shown: nothing was done."""
    REFUSED = "refused"
    """Nothing was done; the detail says why."""
    COUNTED = "counted"
    """More people have to agree: nothing was done."""
    IN_DOUBT = "in_doubt"
    """An earlier undo is not settled yet."""
    UNKNOWN = "unknown"
    """Something may have been done: the ledger has it."""


@dataclass(frozen=True, kw_only=True)
class Undone:
    """How an undo ended: its key in the ledger, a detail, and the receipt if it is done."""

    ending: Ending
    operation_key: str
    detail: str = ""
    receipt: bytes | None = None


def undo_key(record: OperationRecord, attempt: int) -> str:
    """Return the ledger's key of an undo; no run can make one of this form."""
    return f"undo_{short_hash(record.operation_key, str(attempt))}"


def undo_row(plan: UndoPlan, attempt: int) -> OperationRow:
    """Return the ledger's row of an undo of exactly what was shown."""
    record, labels = plan.record, plan.taking_off
    return OperationRow(
        operation_key=undo_key(record, attempt),
        scope=record.scope,
        tenant=record.tenant,
        workflow_id=record.workflow_id,
        operation_id=f"undo-{record.operation_id}",
        version=record.version,
        operation_type=UNDOES,
        digest=digest_of([UNDOES, record.target, record.operation_key, list(labels), attempt]),
        target=record.target,
        arguments=canonical_json([record.operation_key]).decode(),
        labels=labels,
    )


class Undo:
    """Undoes writes.

    Args:
        ledger: where the write is, and where the undo gets a row of its own.
        switches: what stops writes stops this, too.
        trackers: where writes went, by name.
        timeout_seconds: how long one question may take.
    """

    def __init__(
        self,
        ledger: Ledger,
        switches: Switches,
        trackers: Mapping[str, Tracker],
        *,
        timeout_seconds: float = 20.0,
    ) -> None:
        self.ledger = ledger
        self.switches = switches
        self.trackers = trackers
        self.timeout_seconds = timeout_seconds

    async def plan(self, record: OperationRecord) -> UndoPlan:
        """Say what an undo would do; raises what `plan_undo` raises."""
        return await plan_undo(record, self.trackers, timeout_seconds=self.timeout_seconds)

    async def latest(self, record: OperationRecord) -> tuple[int, OperationRecord | None]:
        """Return which attempt an undo of a write would be, and the one that stands if any does."""
        for attempt in count(1):
            found = await self.ledger.get(undo_key(record, attempt))
            if found is None or not (found.state in _OVER or is_partly_done(found)):
                return attempt, found
        raise AssertionError("it counts for ever")

    async def carry_out(
        self, plan: UndoPlan, row: OperationRow, approval: ApprovalRow, approvals: int = 1
    ) -> Undone:
        """Take off what was shown, if it still is as it was shown.

        Where several `approvals` are needed, so many people's must be on the audit trail.

        Raises:
            StorageError: the ledger cannot be used; what was done before, it says.
        """
        answer = await self.ledger.reserve(row, approval, owner=f"undo/{uuid.uuid4().hex}")
        if isinstance(answer, Settled) and answer.state in APPLIED:
            return _ended(row, Ending.DONE_BEFORE, receipt=answer.receipt)
        if not isinstance(answer, Reserved):
            return _ended(row, Ending.IN_DOUBT, "somebody else undoes it, or did")
        attempt = _Attempt(self, plan, row, approval, answer.epoch)
        return await attempt.run(approvals)


class _Attempt:
    """One undo that holds its row under an epoch."""

    def __init__(
        self, undo: Undo, plan: UndoPlan, row: OperationRow, approval: ApprovalRow, epoch: int
    ) -> None:
        self._ledger = undo.ledger
        self._switches = undo.switches
        self._trackers = undo.trackers
        self._seconds = undo.timeout_seconds
        self._plan = plan
        self._row = row
        self._approval = approval
        self._epoch = epoch
        self._taken: list[str] = []

    async def run(self, approvals: int) -> Undone:
        """Look once more, use the approval up, and take off label after label."""
        stop = await self._last_look()
        if stop is not None:
            return await self._give_up(*stop)
        key = self._row.operation_key
        if not await self._ledger.dispatch(key, self._epoch, approvals=approvals):
            return await self._give_up(Ending.REFUSED, "the approval does not hold")
        for label in self._row.labels:
            stop = await self._take_off(label)
            if stop is not None:
                return await self._stopped(*stop)
        return await self._observed()

    async def _last_look(self) -> tuple[Ending, str] | None:
        try:
            now = await plan_undo(self._plan.record, self._trackers, timeout_seconds=self._seconds)
        except TrackerError as error:
            return Ending.REFUSED, str(error)
        if now.taking_off != self._row.labels:
            return Ending.CHANGED, "its labels changed since they were shown"
        if await self._is_stopped():
            return Ending.REFUSED, "writes are stopped"
        return None

    async def _take_off(self, label: str) -> tuple[Ending, str] | None:
        """Take one label off; return why to go no further."""
        if not await self._ledger.still_holds(self._row.operation_key, self._epoch):
            return Ending.REFUSED, "it took too long"
        if await self._is_stopped():
            return Ending.REFUSED, "writes are stopped"
        record = self._plan.record
        _, repository, number = target_of(record)
        try:
            removal = await self._within(
                undoing_tracker(record, self._trackers).remove_own_label(
                    repository,
                    number,
                    label,
                    own_write(record),
                    operation_key=self._row.operation_key,
                )
            )
        except TrackerRefused as error:
            uncertain = error.code in UNCERTAIN_CODES
            return (Ending.UNKNOWN if uncertain else Ending.REFUSED), error.code
        except TrackerUnavailable as error:
            return (Ending.UNKNOWN if error.effect_possible else Ending.REFUSED), str(error)
        except TrackerTimeout as error:
            return Ending.UNKNOWN, str(error)
        if removal is Removal.REMOVED:
            self._taken.append(label)
        return None

    async def _stopped(self, ending: Ending, detail: str) -> Undone:
        """End where a label could not be taken off: nothing was done, or a person has to look."""
        key = self._row.operation_key
        if ending is not Ending.UNKNOWN and not self._taken:
            await self._ledger.release(key, self._epoch, retry_after_seconds=0, reason=detail)
            return await self._give_up(ending, detail)
        await self._ledger.mark_unknown(key, self._epoch, detail)
        if self._taken:
            await self._ledger.attention(key, f"{detail}, and a part of it is undone", OWNER)
        return _ended(self._row, Ending.UNKNOWN, detail)

    async def _observed(self) -> Undone:
        """Success is seeing that the labels are gone."""
        key = self._row.operation_key
        if not self._taken:
            detail = "its labels changed since they were shown"
            return await self._stopped(Ending.CHANGED, detail)
        try:
            after = await self._labels_now()
        except TrackerError as error:
            await self._ledger.mark_unknown(key, self._epoch, str(error))
            return _ended(self._row, Ending.UNKNOWN, str(error))
        if any(has_labels(after, [label]) for label in self._taken):
            detail = "a label is still on the issue"
            await self._ledger.mark_unknown(key, self._epoch, detail)
            return _ended(self._row, Ending.UNKNOWN, detail)
        receipt = self._receipt(after)
        await self._ledger.settle(key, self._epoch, OperationState.APPLIED, receipt)
        return _ended(self._row, Ending.DONE, receipt=receipt)

    async def _labels_now(self) -> tuple[str, ...]:
        name, repository, number = target_of(self._plan.record)
        issue = await read_issue(
            self._trackers[name], repository, number, timeout_seconds=self._seconds
        )
        return issue.labels

    async def _give_up(self, ending: Ending, detail: str) -> Undone:
        await self._ledger.cancel(self._row.operation_key, self._epoch, detail)
        return _ended(self._row, ending, detail)

    async def _is_stopped(self) -> bool:
        return await self._switches.writes_stopped(self._row.tenant)

    async def _within(self, asking: Awaitable[Found]) -> Found:
        try:
            async with asyncio.timeout(self._seconds):
                return await asking
        except TimeoutError:
            raise TrackerTimeout("the tracker did not answer in time") from None

    def _receipt(self, after: tuple[str, ...]) -> bytes:
        row, approval = self._row, self._approval
        receipt = Receipt(
            operation_key=row.operation_key,
            operation_id=row.operation_id,
            version=row.version,
            epoch=self._epoch,
            digest=row.digest,
            issue=target_of(self._plan.record)[2],
            labels=tuple(self._taken),
            how="taken_off",
            before=self._plan.issue.labels,
            after=after,
            policy=None,
            approver=approval.approver,
            approved_by=approval.source.value,
            approval_digest=approval.digest,
            undoes=self._plan.record.operation_key,
        )
        return receipt.to_bytes()


def _ended(
    row: OperationRow, ending: Ending, detail: str = "", receipt: bytes | None = None
) -> Undone:
    return Undone(ending=ending, operation_key=row.operation_key, detail=detail, receipt=receipt)
