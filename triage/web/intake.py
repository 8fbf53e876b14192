"""From the bytes of a delivery to its answer: each check before anything that costs more.

Why it exists: the order is the defence. Nothing is parsed before the signature holds, nothing is
recorded before it is known to matter, and 202 is said only when it is committed.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from triage.contracts.canonical import digest_of_bytes
from triage.faults import Point, reach
from triage.storage.admission import Admission, Answer, Delivery, Meaning, Subject
from triage.storage.errors import StorageError
from triage.web.flood import Flood
from triage.web.hearing import ISSUE_COMMENT, Hearing
from triage.web.in_time import in_time
from triage.web.payload import WITHDRAWN, IssueEvent, PayloadError, parse_event
from triage.web.replies import DATABASE_PAUSE_SECONDS, Received, Reply, ignored, refused, told
from triage.web.requests import UnusableError, content_of, subject_of
from triage.web.signatures import is_signed

ISSUES: Final = "issues"
_DELIVERY_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Intake:
    """Takes deliveries.

    Attributes:
        secrets: each of which may have signed one.
        ignored: logins, in small letters, whose events are ignored.
        tracker: the tracker that runs read the issues from.
        admission: where they are recorded.
        flood: how many a repository may send.
        admitted: called once there is something to start.
        hearing: takes comments; None where nobody may decide by one.
    """

    secrets: Sequence[bytes] = field(repr=False)
    ignored: Collection[str]
    tracker: str
    admission: Admission
    flood: Flood
    admitted: Callable[[], None]
    hearing: Hearing | None = None

    async def take(self, received: Received) -> Reply:
        """Answer one delivery; never raises for what was sent, nor for a database that is gone."""
        if not is_signed(received.body, received.signatures, self.secrets):
            return refused(401, "signature")
        if (reply := self._unfit(received)) is not None:
            return reply
        if self.hearing is not None and received.event == ISSUE_COMMENT:
            return await self.hearing.take(received)
        try:
            event = parse_event(received.body)
        except PayloadError:
            return refused(400, "payload")
        if event is None:
            return ignored("action")
        if (code := self._ignored(event)) is not None:
            return ignored(code)
        subject = subject_of(event)
        if wait := self.flood.wait_for((subject.tenant, subject.repository_id)):
            return refused(429, "flood", retry_after=math.ceil(wait))
        return await self._record(received, event, subject)

    def _ignored(self, event: IssueEvent) -> str | None:
        if event.sender.login.lower() in self.ignored:
            return "sender"
        if event.issue.pull_request is not None:
            return "pull_request"
        is_closed = event.issue.state != "open" and event.action not in WITHDRAWN
        return "closed" if is_closed else None

    async def _record(self, received: Received, event: IssueEvent, subject: Subject) -> Reply:
        delivery = Delivery(
            delivery_id=received.delivery_id,
            event=received.event,
            action=event.action,
            body_digest=digest_of_bytes(received.body),
        )
        try:
            answer = await in_time(self._admit(delivery, event, subject))
        except StorageError:
            _log.exception("a delivery could not be recorded")
            return refused(503, "database", retry_after=DATABASE_PAUSE_SECONDS)
        reach(Point.ADMIT_AFTER_COMMIT)
        if answer.meaning is Meaning.ACCEPTED:
            self.admitted()
        return told(answer)

    async def _admit(self, delivery: Delivery, event: IssueEvent, subject: Subject) -> Answer:
        if event.action in WITHDRAWN:
            return await self.admission.set_aside(delivery, subject, Meaning.GONE)
        try:
            content = content_of(event.issue, subject, self.tracker)
        except UnusableError:
            return await self.admission.set_aside(delivery, subject, Meaning.UNUSABLE)
        return await self.admission.admit(delivery, subject, content)

    def _unfit(self, received: Received) -> Reply | None:
        """Return the answer for a delivery that need not be read, or None."""
        if not _DELIVERY_ID.fullmatch(received.delivery_id):
            return refused(400, "delivery_id")
        if received.event != ISSUES and (received.event != ISSUE_COMMENT or self.hearing is None):
            return ignored("event")
        if received.content_type.partition(";")[0].strip().lower() != "application/json":
            return refused(415, "content_type")
        return None
