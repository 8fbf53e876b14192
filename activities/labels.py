"""The write activity and its preview, as Temporal sees them.

Why it exists: what is registered on the write queue fits on one page. How one write is carried
through is in `activities.label_write`.
"""

from __future__ import annotations

from temporalio import activity

from activities.heartbeat import heartbeats
from activities.label_write import LabelWrite
from activities.services import Services
from triage.contracts.names import ACTIVITY_APPLY_LABELS, ACTIVITY_PREVIEW_OPERATION
from triage.contracts.payloads import Preview, PreviewRequest, WriteRequest, WriteResult
from triage.trackers.base import IssueNotFound


class PreviewActivities:
    """Shows what a write would change; reads only."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=ACTIVITY_PREVIEW_OPERATION)
    async def preview(self, request: PreviewRequest) -> Preview:
        """Return the issue's labels before and after, and its content's digest."""
        target = request.target
        tracker = self._services.trackers[target.tracker]
        issue = await tracker.get_issue(target.repository, target.issue)
        if isinstance(issue, IssueNotFound):
            return Preview(gone=True)
        inventory = await tracker.label_inventory(target.repository)
        return Preview(
            labels_before=tuple(sorted(issue.labels)),
            labels_after=tuple(sorted({*issue.labels, *request.labels})),
            missing=tuple(label for label in request.labels if label not in inventory),
            content_digest=issue.content_digest,
        )


class LabelActivities:
    """Runs on the write queue only."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=ACTIVITY_APPLY_LABELS)
    async def apply(self, request: WriteRequest) -> WriteResult:
        """Apply the approved labels, or say exactly why not.

        Raises:
            ApplicationError: of type ``try_later``, while the ledger makes this attempt wait.
        """
        async with heartbeats():
            return await LabelWrite(self._services, request).run()
