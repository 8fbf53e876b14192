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
from triage.storage.ledger import Ledger
from triage.storage.leftovers import Closing, close_absent
from triage.storage.operations import Moved, OperationRecord
from triage.storage.receipts import Receipt
from triage.trackers.base import LabelPresence, Tracker, TrackerError
from triage.trackers.reading import Effect, Reading, read_labels
from triage.trackers.undo_plan import UNDOES

READ_SECONDS = 10.0


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
            nothing shows and the quiet period is not over.

        Raises:
            TrackerError: the issue cannot be read; nothing was recorded.
        """
        reading = await self._read(record)
        issue = reading.issue.number
        reach(Point.READ_BACK_BEFORE_RECORD)
        key, epoch = record.operation_key, record.epoch
        effect = effect_on(record, reading)
        if effect is None:
            return await close_absent(self._store, self._ledger.timings, key, epoch, closing)
        receipt = await self._receipt(record, effect, issue, reading.issue.labels)
        return await self._ledger.reconcile(key, epoch, present=True, receipt=receipt)

    async def is_begun(self, record: OperationRecord) -> bool:
        """Whether anything on the issue may be the work of this write; raises like `settle`."""
        reading = await self._read(record)
        if record.operation_type == UNDOES:
            return any(place is not LabelPresence.PRESENT for place in reading.places)
        return reading.is_begun

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
        self, record: OperationRecord, how: Effect, issue: str, after: Sequence[str]
    ) -> bytes:
        approval = await Approvals(self._store).get(record.operation_key, record.version)
        receipt = Receipt(
            operation_key=record.operation_key,
            operation_id=record.operation_id,
            version=record.version,
            epoch=record.epoch,
            digest=record.digest,
            issue=issue,
            labels=record.labels,
            how=how,
            before=(),
            after=after,
            policy=None,
            approver=approval.approver if approval else None,
            approved_by=approval.source.value if approval else None,
            approval_digest=approval.digest if approval else None,
            undoes=json.loads(record.arguments)[0] if record.operation_type == UNDOES else None,
        )
        return receipt.to_bytes()


def effect_on(record: OperationRecord, reading: Reading) -> Effect | None:
    """Return how a write shows on the issue, or None if it does not; an undo shows by absence."""
    if record.operation_type != UNDOES:
        return reading.effect
    return "taken_off" if reading.is_off else None
