"""From the bytes of a delivery to its answer: each check before anything that costs more.

Why it exists: the order is the defence. Nothing is parsed before the signature holds, nothing is
recorded before it is known to matter, and 202 is said only when it is committed.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from triage.contracts.canonical import digest_of_bytes
from triage.faults import Point, reach
from triage.storage.admission import Admission, Answer, Delivery, Meaning, Subject
from triage.storage.errors import StorageError
from triage.web.flood import Flood
from triage.web.payload import WITHDRAWN, IssueEvent, PayloadError, parse_event
from triage.web.requests import UnusableError, content_of, subject_of
from triage.web.signatures import is_signed

ISSUES: Final = "issues"
DATABASE_PAUSE_SECONDS: Final = 10
_DELIVERY_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Received:
    """A delivery as it arrived: nothing of it was checked."""

    body: bytes
    signatures: Sequence[str]
    delivery_id: str
    event: str
    content_type: str


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the sender is told.

    Attributes:
        status: of HTTP.
        outcome: a word.
        code: why; empty if there is nothing to say.
        request: the request's opaque key, if there is one.
        retry_after: seconds; 0 if there is nothing to wait for.
    """

    status: int
    outcome: str
    code: str = ""
    request: str | None = None
    retry_after: int = 0

    def document(self) -> dict[str, str | None]:
        """Return it as the body of an answer."""
        return {"outcome": self.outcome, "code": self.code or None, "request": self.request}


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
    """

    secrets: Sequence[bytes] = field(repr=False)
    ignored: Collection[str]
    tracker: str
    admission: Admission
    flood: Flood
    admitted: Callable[[], None]

    async def take(self, received: Received) -> Reply:
        """Answer one delivery; never raises for what was sent, nor for a database that is gone."""
        if not is_signed(received.body, received.signatures, self.secrets):
            return _refused(401, "signature")
        if (reply := _unfit(received)) is not None:
            return reply
        try:
            event = parse_event(received.body)
        except PayloadError:
            return _refused(400, "payload")
        if event is None:
            return _ignored("action")
        if (code := self._ignored(event)) is not None:
            return _ignored(code)
        subject = subject_of(event)
        if wait := self.flood.wait_for((subject.tenant, subject.repository_id)):
            return _refused(429, "flood", retry_after=math.ceil(wait))
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
            answer = await self._admit(delivery, event, subject)
        except StorageError:
            _log.exception("a delivery could not be recorded")
            return _refused(503, "database", retry_after=DATABASE_PAUSE_SECONDS)
        reach(Point.ADMIT_AFTER_COMMIT)
        if answer.meaning is Meaning.ACCEPTED:
            self.admitted()
        return _told(answer)

    async def _admit(self, delivery: Delivery, event: IssueEvent, subject: Subject) -> Answer:
        if event.action in WITHDRAWN:
            return await self.admission.set_aside(delivery, subject, Meaning.GONE)
        try:
            content = content_of(event, subject, self.tracker)
        except UnusableError:
            return await self.admission.set_aside(delivery, subject, Meaning.UNUSABLE)
        return await self.admission.admit(delivery, subject, content)


def _unfit(received: Received) -> Reply | None:
    """Return the answer for a delivery that need not be read, or None."""
    if not _DELIVERY_ID.fullmatch(received.delivery_id):
        return _refused(400, "delivery_id")
    if received.event != ISSUES:
        return _ignored("event")
    if received.content_type.partition(";")[0].strip().lower() != "application/json":
        return _refused(415, "content_type")
    return None


_OUTCOMES: Final[Mapping[Meaning, str]] = {
    Meaning.ACCEPTED: "accepted",
    Meaning.UNUSABLE: "refused",
}


def _told(answer: Answer) -> Reply:
    if answer.meaning is Meaning.REUSED:
        return _refused(409, Meaning.REUSED)
    accepted = answer.meaning is Meaning.ACCEPTED
    return Reply(
        status=202,
        outcome=_OUTCOMES.get(answer.meaning, "ignored"),
        code="" if accepted else answer.meaning,
        request=answer.request_key,
    )


def _refused(status: int, code: str, retry_after: int = 0) -> Reply:
    return Reply(status=status, outcome="refused", code=code, retry_after=retry_after)


def _ignored(code: str) -> Reply:
    return Reply(status=202, outcome="ignored", code=code)
