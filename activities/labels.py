"""The write activity and its preview, as Temporal sees them.

Why it exists: what is registered on the write queue fits on one page. How one write is carried
through is in `activities.label_write`.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final, NoReturn

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.heartbeat import heartbeats
from activities.label_write import LabelWrite
from activities.services import Services
from triage.contracts.failures import FailureClass
from triage.contracts.names import ACTIVITY_APPLY_LABELS, ACTIVITY_PREVIEW_OPERATION
from triage.contracts.payloads import Preview, PreviewRequest, WriteRequest, WriteResult
from triage.faults import Point, reach
from triage.trackers.base import (
    GONE_CODES,
    IssueNotFound,
    TrackerRefused,
    TrackerTimeout,
    TrackerUnavailable,
)

PREVIEW_SECONDS: Final = 5.0
"""Less than the workflow gives a local activity, so that it ends with a reason of ours."""
PREVIEW_ATTEMPTS: Final = 5
MAX_PAUSE_SECONDS: Final = 60.0


class PreviewActivities:
    """Shows what a write would change; reads only."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=ACTIVITY_PREVIEW_OPERATION)
    async def preview(self, request: PreviewRequest) -> Preview:
        """Return the issue's labels before and after, and its content's digest.

        Raises:
            ApplicationError: of type ``tool_error`` or ``tool_timeout``. It is final where the
                tracker refuses, and after `PREVIEW_ATTEMPTS` where it does not work or answer.
        """
        try:
            async with asyncio.timeout(PREVIEW_SECONDS):
                return await self._preview(request)
        except TrackerRefused as error:
            if error.code in GONE_CODES:
                return Preview(gone=True)
            message = f"the tracker refuses to show the issue: {error.code}"
            raise ApplicationError(
                message, type=FailureClass.TOOL_ERROR.value, non_retryable=True
            ) from None
        except (TimeoutError, TrackerTimeout):
            _try_again(FailureClass.TOOL_TIMEOUT, "the tracker does not answer", None)
        except TrackerUnavailable as error:
            pause = error.retry_after_seconds
            _try_again(FailureClass.TOOL_ERROR, "the tracker does not work", pause)

    async def _preview(self, request: PreviewRequest) -> Preview:
        target = request.target
        tracker = self._services.trackers[target.tracker]
        reach(Point.PREVIEW_BEFORE_LOOK)
        issue = await tracker.get_issue(target.repository, target.issue)
        if isinstance(issue, IssueNotFound):
            return Preview(gone=True)
        inventory = await tracker.label_inventory(target.repository)
        reach(Point.PREVIEW_AFTER_LOOK)
        return Preview(
            labels_before=tuple(sorted(issue.labels)),
            labels_after=tuple(sorted({*issue.labels, *request.labels})),
            missing=tuple(label for label in request.labels if label not in inventory),
            content_digest=issue.content_digest,
        )


def _try_again(failure: FailureClass, message: str, pause_seconds: float | None) -> NoReturn:
    pause = None if pause_seconds is None else min(pause_seconds, MAX_PAUSE_SECONDS)
    raise ApplicationError(
        message,
        type=failure.value,
        non_retryable=activity.info().attempt >= PREVIEW_ATTEMPTS,
        next_retry_delay=None if pause is None else timedelta(seconds=pause),
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
