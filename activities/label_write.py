"""The one write: labels, through the ledger, to the tracker, and back with a receipt.

Why it exists: Temporal may run an activity again while an earlier attempt still runs, and a
write whose answer is lost may have happened. So the right to send is a row in the ledger, an
uncertain write is settled by reading, and nothing is ever sent twice.
"""

from __future__ import annotations

import asyncio
from typing import NoReturn

from temporalio import activity

from activities import label_sending
from activities.approvals import is_signed
from activities.entitled import why_not_entitled
from activities.label_answers import (
    OWNER,
    RETRY_SECONDS,
    given_up,
    given_up_reason,
    later,
    must,
    refused,
    told,
    told_earlier,
    unknown_result,
)
from activities.label_rows import approval_row, key_of, operation_row, receipt_row
from activities.needed import approvals_needed
from activities.receipts import How, applied, receipt_evidence, write_receipt
from activities.services import Services
from triage.contracts.payloads import WriteOutcome, WriteRequest, WriteResult
from triage.faults import Point, reach
from triage.storage.evidence import EvidenceRow
from triage.storage.operations import Busy, Conflict, InDoubt, MoveCode, Refused, Reserved, Settled
from triage.storage.transitions import OperationState
from triage.trackers.base import (
    UNCERTAIN_CODES,
    TrackedIssue,
    Tracker,
    TrackerRefused,
    TrackerTimeout,
    TrackerUnavailable,
    has_labels,
)
from triage.trackers.inventory import LABEL_CHANGED
from triage.trackers.reading import Reading, found, overview_of, read_issue, read_labels

WRITES_STOPPED = "writes are stopped"
UNAVAILABLE = "the tracker is unavailable"
PARTLY_DONE = "the tracker refused the write, and a part of it is done all the same"
CREATED = "a label had vanished just before, and the tracker made it anew"
LEFT_BEHIND = "and a part of it is done"
"""Ends the reason of a write that an earlier attempt left half done, and that cannot go on."""
UNSIGNED = "no signed approval of this operation is on record"


class LabelWrite:
    """One attempt to carry one operation to a settled state."""

    def __init__(self, services: Services, request: WriteRequest) -> None:
        self._services = services
        self._ledger = services.ledger
        self._request = request
        self._operation = request.operation
        self._key = key_of(request)
        self._seconds = label_sending.call_seconds(services, request)
        self._before: tuple[str, ...] = ()
        self._labels = request.operation.labels
        self._send_by = 0.0
        self._sent_before = False
        self._left = False
        self._request_id: str | None = None
        self._tracker: Tracker = services.trackers[request.operation.target.tracker]

    async def run(self) -> WriteResult:
        """Reserve the operation and go on from what the ledger answers."""
        info = activity.info()
        owner = f"{info.workflow_run_id}/{info.activity_id}/{info.attempt}"
        row = operation_row(self._request, info.workflow_id or "")
        if not await is_signed(self._services, self._key, self._operation.version):
            await self._abandon(UNSIGNED)
            return refused(UNSIGNED)
        answer = await self._ledger.reserve(row, approval_row(self._request), owner=owner)
        match answer:
            case Reserved():
                self._sent_before = answer.dispatches > 0
                return await self._dispatch(answer.epoch)
            case Settled():
                return await self._settled(answer)
            case InDoubt():
                return await self._reconcile(answer)
            case Busy():
                raise later(answer.retry_after_seconds)
            case Conflict():
                detail = f"the operation id is taken: {answer.code}"
                return WriteResult(outcome=WriteOutcome.CONFLICT, detail=detail)
            case Refused():
                await self._abandon(f"the approval does not hold: {answer.code}")
                return refused(f"the approval does not hold: {answer.code}")

    async def _dispatch(self, epoch: int) -> WriteResult:
        """Check everything once more, consume the approval and send."""
        stop = await self._last_look(epoch)
        if stop is not None:
            return stop
        needed = await approvals_needed(self._services, self._request)
        moved = await self._ledger.dispatch(self._key, epoch, approvals=needed)
        if moved.code is MoveCode.NOT_APPROVED:
            reason = f"the approval does not hold: {moved.refusal}"
            return await self._stop(epoch, reason, WriteOutcome.REFUSED)
        must(moved)
        must(await self._ledger.still_holds(self._key, epoch))
        if await self._writes_stopped():
            return await self._take_back(epoch, WRITES_STOPPED, WriteOutcome.REFUSED)
        # A process that stood still since has seen nothing of what happened meanwhile.
        if label_sending.clock() > self._send_by:
            return await self._unknown(epoch, "too late to be sent")
        return await self._send(epoch)

    async def _last_look(self, epoch: int) -> WriteResult | None:
        """Return why the write must not be sent, having given up the reservation."""
        try:
            async with asyncio.timeout(self._seconds):
                reading = found(await overview_of(self._tracker, *self._place))
                barred = await why_not_entitled(self._services, self._request, self._tracker)
        except TrackerRefused as error:
            return await self._refused_to_show(epoch, error.code)
        except (TimeoutError, TrackerTimeout, TrackerUnavailable):
            raise later(RETRY_SECONDS) from None
        self._send_by = label_sending.send_by(self._services)
        self._left = self._sent_before and reading.is_begun
        against = label_sending.objection(self._request, self._operation, reading)
        if against is not None:
            return await self._stop(epoch, *against)
        if barred is not None:
            return await self._stop(epoch, barred, WriteOutcome.REFUSED)
        if await self._writes_stopped():
            return await self._stop(epoch, WRITES_STOPPED, WriteOutcome.REFUSED)
        if not label_sending.has_its_turn(self._tracker, self._key):
            raise later(RETRY_SECONDS)
        self._before = reading.issue.labels
        self._operation = label_sending.pinned_at(self._operation, reading.inventory)
        # A part may be there already: the tracker need not be asked for that again.
        self._labels = reading.missing or self._operation.labels
        return None

    async def _refused_to_show(self, epoch: int, code: str) -> WriteResult:
        reason, owner = told(code)
        # What an earlier attempt left there cannot be seen: it may be something.
        self._left = self._sent_before
        return await self._stop(epoch, reason, WriteOutcome.FAILED, owner)

    async def _writes_stopped(self) -> bool:
        """Read the switch; a switch that cannot be read ends the attempt, with nothing sent."""
        return await self._services.switches.writes_stopped(self._request.tenant)

    async def _take_back(self, epoch: int, why: str, outcome: WriteOutcome) -> WriteResult:
        """Undo a dispatch after which nothing was sent, nor can be by anybody under this epoch.

        It ends as it would have a moment earlier: given up. `failed` would forbid a newer version
        of the run to try again with an approval of its own.
        """
        if self._left:
            return await self._leave_dispatched(epoch, why)
        moved = await self._ledger.release(self._key, epoch, retry_after_seconds=0, reason=why)
        must(moved)
        if moved.state is OperationState.FAILED:
            return WriteResult(outcome=WriteOutcome.FAILED, detail=why)
        return await self._stop(epoch, why, outcome)

    async def _stop(
        self, epoch: int, reason: str, outcome: WriteOutcome, owner: str | None = None
    ) -> WriteResult:
        """Give up while no effect is possible, and hand over what an earlier attempt began."""
        if self._left:
            return await self._leave(epoch, reason)
        why = given_up_reason(outcome, reason)
        must(await self._ledger.cancel(self._key, epoch, why, attention_owner=owner))
        return WriteResult(outcome=outcome, detail=reason)

    async def _leave(self, epoch: int, reason: str) -> WriteResult:
        """Hand a write to a person that is half done and cannot go on."""
        why = f"{reason}, {LEFT_BEHIND}"
        must(await self._ledger.attention(self._key, why, OWNER, epoch=epoch))
        return unknown_result()

    async def _leave_dispatched(self, epoch: int, reason: str) -> WriteResult:
        must(await self._ledger.mark_unknown(self._key, epoch, reason))
        return await self._leave(epoch, reason)

    async def _send(self, epoch: int) -> WriteResult:
        """Call the tracker once; what is not answered is unknown, never failed."""
        reach(Point.WRITE_BEFORE_SEND)
        try:
            async with asyncio.timeout(self._seconds):
                sent = await label_sending.send_labels(
                    self._tracker, self._operation, self._labels, self._key
                )
        except TrackerRefused as error:
            if error.code == LABEL_CHANGED:
                return await self._take_back(epoch, str(error), WriteOutcome.CONFLICT)
            if error.code in UNCERTAIN_CODES:
                return await self._read_back(epoch, error.code)
            return await self._failed(epoch, error.code)
        except TrackerUnavailable as error:
            return await self._unavailable(epoch, error)
        except (TimeoutError, TrackerTimeout):
            return await self._unknown(epoch)
        self._request_id = sent.request_id
        reach(Point.WRITE_AFTER_SEND)
        if sent.refused and not sent.added:
            return await self._failed(epoch, "the tracker refused a label")
        if sent.created:
            return await self._hand_over(epoch, CREATED)
        return await self._observe(epoch, "applied_by_us" if sent.added else "already_present")

    async def _unavailable(self, epoch: int, error: TrackerUnavailable) -> WriteResult:
        """Take the write back on a definite no; without one its outcome is unknown."""
        if error.effect_possible or self._left:
            return await self._unknown(epoch)
        wait = error.retry_after_seconds or RETRY_SECONDS
        moved = await self._ledger.release(
            self._key, epoch, retry_after_seconds=wait, reason=UNAVAILABLE
        )
        must(moved)
        if moved.state is OperationState.FAILED:
            return WriteResult(outcome=WriteOutcome.FAILED, detail=UNAVAILABLE)
        raise later(wait)

    async def _failed(self, epoch: int, code: str) -> WriteResult:
        """Settle on the tracker's word that it did nothing; some of it only a person can change."""
        reason, owner = told(code)
        if self._left:
            return await self._leave_dispatched(epoch, reason)
        moved = await self._ledger.settle(
            self._key, epoch, OperationState.FAILED, b"", reason, attention_owner=owner
        )
        must(moved)
        return WriteResult(outcome=WriteOutcome.FAILED, detail=reason)

    async def _read_back(self, epoch: int, code: str) -> WriteResult:
        """See what a refused request did, before it is said to have failed."""
        try:
            reading = await self._reading()
        except (TrackerRefused, TrackerTimeout, TrackerUnavailable):
            return await self._unknown(epoch)
        if set(self._labels).issubset(reading.missing):
            return await self._failed(epoch, code)
        if reading.effect is None:
            return await self._hand_over(epoch, PARTLY_DONE)
        receipt = self._receipt(epoch, reading.effect, self._before, reading.issue)
        return await self._settle(epoch, receipt)

    async def _observe(self, epoch: int, how: How) -> WriteResult:
        """Success is seeing the labels on the issue, not having been told of it."""
        at = self._operation.target
        try:
            issue = await read_issue(
                self._tracker, at.repository, at.issue, timeout_seconds=self._seconds
            )
        except (TrackerRefused, TrackerTimeout, TrackerUnavailable):
            return await self._unknown(epoch)
        if not has_labels(issue.labels, self._operation.labels):
            return await self._unknown(epoch)
        receipt = self._receipt(epoch, how, self._before, issue)
        return await self._settle(epoch, receipt)

    async def _unknown(self, epoch: int, reason: str = "no answer") -> NoReturn:
        """Leave the question open; the next attempt settles it by reading."""
        must(await self._ledger.mark_unknown(self._key, epoch, reason))
        raise later(0)

    async def _reconcile(self, doubt: InDoubt) -> WriteResult:
        """Settle an uncertain write by reading the issue."""
        if doubt.state is OperationState.DISPATCHED:
            must(await self._ledger.mark_unknown(self._key, doubt.epoch, "attempt lost"))
        if doubt.state is OperationState.ATTENTION:
            return unknown_result()
        try:
            reading = await self._reading()
        except TrackerRefused:
            return await self._wait_or_give_up(doubt, doubt.quiet_for_seconds)
        except (TrackerTimeout, TrackerUnavailable):
            return await self._wait_or_give_up(doubt, doubt.patience_seconds)
        if reading.effect is None:
            return await self._absent(doubt)
        receipt = self._receipt(doubt.epoch, reading.effect, (), reading.issue)
        must(await self._ledger.reconcile(self._key, doubt.epoch, present=True, receipt=receipt))
        return await self._applied(receipt, replayed=False)

    async def _absent(self, doubt: InDoubt) -> WriteResult:
        """Absence proves something only after the quiet period; then it may be sent again."""
        moved = await self._ledger.reconcile(self._key, doubt.epoch, present=False)
        if moved.code is MoveCode.TOO_EARLY:
            raise later(min(moved.retry_after_seconds, self._pause(doubt)))
        if doubt.exhausted:
            return await self._give_up("absent after every permitted dispatch")
        must(moved)
        raise later(0)

    async def _wait_or_give_up(self, doubt: InDoubt, seconds: float) -> WriteResult:
        """Read again later, for so many seconds; then a person has to look."""
        if seconds > 0:
            raise later(min(seconds, self._pause(doubt)))
        return await self._give_up("the issue cannot be read")

    def _pause(self, doubt: InDoubt) -> float:
        """How long until the next reading: what is on its way shows soon, or rather late."""
        waited = self._ledger.timings.quiet_period_seconds - doubt.quiet_for_seconds
        return max(waited, RETRY_SECONDS)

    async def _abandon(self, reason: str) -> None:
        """Leave no write behind that looks as if somebody would still carry it on."""
        record = await self._ledger.get(self._key)
        if record is None:
            return
        if record.state is OperationState.RESERVED:
            self._left = record.dispatches > 0 and await self._is_begun()
            await self._stop(record.epoch, reason, WriteOutcome.REFUSED)
        elif record.state is OperationState.RECONCILED_ABSENT:
            await self._ledger.attention(self._key, reason, OWNER)

    async def _is_begun(self) -> bool:
        try:
            return (await self._reading()).is_begun
        except TrackerRefused:
            return True
        except (TrackerTimeout, TrackerUnavailable):
            raise later(RETRY_SECONDS) from None

    async def _hand_over(self, epoch: int, reason: str) -> WriteResult:
        """Leave what was sent, and came to something else, to a person."""
        must(await self._ledger.mark_unknown(self._key, epoch, reason))
        return await self._give_up(reason)

    async def _give_up(self, reason: str) -> WriteResult:
        await self._ledger.attention(self._key, reason, OWNER)
        return unknown_result()

    async def _settled(self, answer: Settled) -> WriteResult:
        """Answer a repeat with the first receipt."""
        if answer.state is OperationState.FAILED:
            return WriteResult(
                outcome=WriteOutcome.FAILED, replayed=True, detail=answer.reason or "failed before"
            )
        if answer.receipt is not None:
            return told_earlier(answer, await self._applied(answer.receipt, replayed=True))
        if answer.state is OperationState.CANCELLED:
            return given_up(answer.reason)
        # It was applied so long ago that only the digest of its receipt is left.
        evidence = receipt_evidence(self._request, answer.receipt_digest or "")
        done = WriteResult(outcome=WriteOutcome.APPLIED, replayed=True, evidence=evidence)
        return told_earlier(answer, done)

    async def _settle(self, epoch: int, receipt: bytes) -> WriteResult:
        """Record that the write is done, and keep the receipt as evidence of this run, at once."""
        moved = await self._ledger.settle(
            self._key, epoch, OperationState.APPLIED, receipt, evidence=self._row(receipt)
        )
        must(moved)
        return applied(self._request, receipt, replayed=False)

    async def _applied(self, receipt: bytes, *, replayed: bool) -> WriteResult:
        """Keep the receipt as evidence of this run and return it."""
        await self._services.evidence.put(self._row(receipt))
        return applied(self._request, receipt, replayed=replayed)

    def _row(self, receipt: bytes) -> EvidenceRow:
        return receipt_row(self._request, receipt, self._services.content_expiry())

    async def _reading(self) -> Reading:
        return await read_labels(self._tracker, *self._place, timeout_seconds=self._seconds)

    @property
    def _place(self) -> tuple[str, str, tuple[str, ...]]:
        at = self._operation.target
        return at.repository, at.issue, self._operation.labels

    def _receipt(self, epoch: int, how: How, before: tuple[str, ...], issue: TrackedIssue) -> bytes:
        return write_receipt(
            self._request,
            self._key,
            epoch=epoch,
            how=how,
            before=before,
            after=issue.labels,
            request_id=self._request_id,
        )
