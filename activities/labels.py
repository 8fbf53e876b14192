"""The write activity and its preview, as Temporal sees them.

Why it exists: what is registered on the write queue fits on one page. How one write is carried
through is in `activities.label_write`.
"""

from __future__ import annotations

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.approvals import NOT_ITSELF, is_itself
from activities.far_end import look
from activities.heartbeat import heartbeats
from activities.label_answers import refused
from activities.label_rows import key_of
from activities.label_write import LabelWrite
from activities.services import Services
from triage.contracts.failures import FailureClass
from triage.contracts.names import ACTIVITY_APPLY_LABELS, ACTIVITY_PREVIEW_OPERATION
from triage.contracts.payloads import Preview, PreviewRequest, WriteRequest, WriteResult
from triage.faults import Point, reach
from triage.storage.approvers import is_held_by
from triage.trackers.base import (
    GONE_CODES,
    MAX_LABELS,
    IssueNotFound,
    LabelPresence,
    TrackerRefused,
    with_labels,
)
from triage.trackers.reading import Overview, overview_of

OTHER_TENANT = "the operation is another tenant's"


class PreviewActivities:
    """Shows what a write would change; reads only."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=ACTIVITY_PREVIEW_OPERATION)
    async def preview(self, request: PreviewRequest) -> Preview:
        """Return the issue's labels before and after, and its content's digest.

        Raises:
            ApplicationError: of type ``tool_error`` or ``tool_timeout``; see `look`. Where the
                tracker refuses, it is final at once.
        """
        try:
            return await look(self._preview(request))
        except TrackerRefused as error:
            if error.code in GONE_CODES:
                return Preview(gone=True, at=request.at)
            message = f"the tracker refuses to show the issue: {error.code}"
            raise ApplicationError(
                message, type=FailureClass.TOOL_ERROR.value, non_retryable=True
            ) from None

    async def _preview(self, request: PreviewRequest) -> Preview:
        target = request.target
        tracker = self._services.trackers[target.tracker]
        reach(Point.PREVIEW_BEFORE_LOOK)
        seen = await overview_of(tracker, target.repository, target.issue, request.labels)
        reach(Point.PREVIEW_AFTER_LOOK)
        if isinstance(seen, IssueNotFound):
            return Preview(gone=True, at=request.at)
        issue, inventory = seen.issue, seen.inventory
        after = with_labels(issue.labels, request.labels, inventory.names)
        shown = Preview(
            labels_before=tuple(sorted(issue.labels)),
            labels_after=tuple(sorted(after)),
            missing=tuple(inventory.lacks(request.labels)),
            content_digest=issue.content_digest,
            at=request.at,
        )
        return shown.model_copy(update=_unusual(seen, len(after)))


def _unusual(seen: Overview, count: int) -> dict[str, object]:
    """Return what else there is to say: only that is written into the run's history."""
    labels, inventory = seen.labels, seen.inventory
    pairs = zip(labels, seen.places, strict=True)
    removed = tuple(name for name, place in pairs if place is LabelPresence.REMOVED_BY_PERSON)
    found: dict[str, object] = {
        "removed": removed,
        "too_many": count > MAX_LABELS,
        "label_ids": inventory.ids(labels) if inventory.has_ids else {},
    }
    return {name: value for name, value in found.items() if value}


class LabelActivities:
    """Runs on the write queue only."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=ACTIVITY_APPLY_LABELS)
    async def apply(self, request: WriteRequest) -> WriteResult:
        """Apply the approved labels, or say exactly why not.

        What names an approved operation and is another one, or another tenant's, touches nothing,
        the ledger included.

        Raises:
            ApplicationError: of type ``try_later``, while the ledger makes this attempt wait.
        """
        if not is_itself(request.operation):
            return refused(NOT_ITSELF)
        if not await is_held_by(self._services.store, key_of(request), request.tenant):
            return refused(OTHER_TENANT)
        async with heartbeats():
            return await LabelWrite(self._services, request).run()
