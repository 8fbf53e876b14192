"""Settles a write that its run left in doubt, by reading the issue; nothing is ever sent.

Why it exists: the sweeper does this for runs that are gone, and people do it for writes that need
them. Both must see and record the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from triage.faults import Point, reach
from triage.storage.approvals import Approvals
from triage.storage.engine import Store
from triage.storage.judgement import quiet_for_seconds
from triage.storage.ledger import Ledger
from triage.storage.leftovers import Closing, close_absent
from triage.storage.operations import MoveCode, Moved, OperationRecord
from triage.storage.receipts import How, Receipt
from triage.trackers.base import TrackedIssue, Tracker, TrackerError
from triage.trackers.reading import Reading, read_labels
from triage.trackers.undo_plan import UNDOES
from triage.trackers.undo_reading import PARTLY, UndoReading, read_undo

READ_SECONDS = 10.0
HALF_UNDONE = "some of its labels were taken off, and others are still on the issue"


class TrackerUnknown(TrackerError):  # noqa: N818 - names the fault, as the others do
    """The write went to a tracker that this process does not have."""


class ReadBack:
    """Reads writes back.

    Args:
        store: the ledger's.
        ledger: where what is found is recorded.
        trackers: where writes went, by name.
        timeout_seconds: how long one reading may take.
    """

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        trackers: Mapping[str, Tracker],
        *,
        timeout_seconds: float = READ_SECONDS,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._trackers = trackers
        self._timeout_seconds = timeout_seconds

    async def settle(self, record: OperationRecord, closing: Closing) -> Moved:
        """Read the issue of a write that may have happened, and record what shows.

        Args:
            record: an unknown or absent write, or one that needs a person.
            closing: how it is left when nothing shows.

        Returns:
            In state `reconciled_applied` or `reconciled_absent` if it was recorded; `TOO_EARLY` if
            not all of it shows and the quiet period is not over. An undo that shows in part is in
            state `attention` if the closing tells a person, and else has a receipt that says so.

        Raises:
            TrackerError: the issue cannot be read; nothing was recorded.
        """
        labels: Sequence[str] = record.labels
        effect: How | None
        if record.operation_type == UNDOES:
            undone = await self._read_undo(record)
            issue, labels, effect = undone.issue, undone.taken, undone.effect
        else:
            reading = await self._read(record)
            issue, effect = reading.issue, reading.effect
        reach(Point.READ_BACK_BEFORE_RECORD)
        key, epoch = record.operation_key, record.epoch
        if effect is None:
            return await close_absent(self._store, self._ledger.timings, key, epoch, closing)
        if effect == PARTLY and (stays := await self._stays_open(record, closing)) is not None:
            return stays
        receipt = await self._receipt(record, effect, issue, labels)
        return await self._ledger.reconcile(key, epoch, present=True, receipt=receipt)

    async def _stays_open(self, record: OperationRecord, closing: Closing) -> Moved | None:
        """Leave an undo that was done in part to a person; None if it is one who asks, and may.

        It is never absent, and while a request may still take effect it is nothing else either.
        """
        async with self._store.read() as connection:
            now = await self._store.now(connection)
        wait = quiet_for_seconds(record, now, self._ledger.timings)
        if wait > 0:
            return Moved(code=MoveCode.TOO_EARLY, state=record.state, retry_after_seconds=wait)
        if not closing.attention:
            return None
        return await self._ledger.attention(
            record.operation_key, HALF_UNDONE, closing.owner, epoch=record.epoch
        )

    async def is_begun(self, record: OperationRecord) -> bool:
        """Whether anything on the issue may be the work of this write; raises like `settle`."""
        if record.operation_type == UNDOES:
            return bool((await self._read_undo(record)).taken)
        return (await self._read(record)).is_begun

    async def _read_undo(self, record: OperationRecord) -> UndoReading:
        tracker, _, _ = self._place(record)
        return await read_undo(record, tracker, timeout_seconds=self._timeout_seconds)

    async def _read(self, record: OperationRecord) -> Reading:
        tracker, repository, issue = self._place(record)
        return await read_labels(
            tracker, repository, issue, record.labels, timeout_seconds=self._timeout_seconds
        )

    def _place(self, record: OperationRecord) -> tuple[Tracker, str, str]:
        target = json.loads(record.target)
        tracker = self._trackers.get(target["tracker"])
        if tracker is None:
            raise TrackerUnknown("the write went to a tracker that is not set up here")
        return tracker, target["repository"], target["issue"]

    async def _receipt(
        self, record: OperationRecord, how: How, issue: TrackedIssue, labels: Sequence[str]
    ) -> bytes:
        approval = await Approvals(self._store).get(record.operation_key, record.version)
        receipt = Receipt(
            operation_key=record.operation_key,
            operation_id=record.operation_id,
            version=record.version,
            epoch=record.epoch,
            digest=record.digest,
            issue=issue.number,
            labels=labels,
            how=how,
            before=(),
            after=issue.labels,
            policy=None,
            approver=approval.approver if approval else None,
            approved_by=approval.source.value if approval else None,
            approval_digest=approval.digest if approval else None,
            undoes=json.loads(record.arguments)[0] if record.operation_type == UNDOES else None,
        )
        return receipt.to_bytes()
