"""Takes comments: those in which a person answers what a run asks, and no others.

Why it exists: anybody may write a comment. What is recorded here is only that somebody said
something; whether they may is asked of the tracker before anything comes of it, and once more
before anything is written.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from triage.contracts.canonical import digest_of_bytes
from triage.storage.admission import Admission, Answer, Delivery, Meaning, Subject
from triage.storage.commands import Command, Commands
from triage.storage.errors import StorageError
from triage.web.comments import CommentEvent, Order, is_by_machine, order_in, parse_comment_event
from triage.web.flood import Flood
from triage.web.in_time import in_time
from triage.web.payload import PayloadError
from triage.web.replies import DATABASE_PAUSE_SECONDS, Received, Reply, ignored, refused, told
from triage.web.requests import subject_of

ISSUE_COMMENT: Final = "issue_comment"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Hearing:
    """Takes the comments of deliveries whose signature holds.

    Attributes:
        ignored: logins, in small letters, that are never heard: ours among them.
        admission: where refused ones are recorded.
        commands: where answers are recorded.
        flood: how many deliveries a repository may send.
        heard: called once there is an answer to carry on.
    """

    ignored: Collection[str]
    admission: Admission
    commands: Commands
    flood: Flood
    heard: Callable[[], None]

    async def take(self, received: Received) -> Reply:
        """Answer one delivery; never raises for what was sent, nor for a database that is gone."""
        try:
            event = parse_comment_event(received.body)
        except PayloadError:
            return refused(400, "payload")
        if event is None:
            return ignored("action")
        if (code := self._unheard(event)) is not None:
            return ignored(code)
        order = order_in(event.comment.body or "")
        if order is None:
            return ignored("no_order")
        subject = subject_of(event)
        if wait := self.flood.wait_for((subject.tenant, subject.repository_id)):
            return refused(429, "flood", retry_after=math.ceil(wait))
        return await self._record(received, event, subject, order)

    def _unheard(self, event: CommentEvent) -> str | None:
        user = event.comment.user
        if user is None or is_by_machine(event):
            return "bot"
        if user.login.lower() in self.ignored:
            return "sender"
        return "pull_request" if event.issue.pull_request is not None else None

    async def _record(
        self, received: Received, event: CommentEvent, subject: Subject, order: Order
    ) -> Reply:
        delivery = Delivery(
            delivery_id=received.delivery_id,
            event=received.event,
            action=event.action,
            body_digest=digest_of_bytes(received.body),
        )
        try:
            answer = await in_time(self._admit(delivery, event, subject, order))
        except StorageError:
            _log.exception("a comment could not be recorded")
            return refused(503, "database", retry_after=DATABASE_PAUSE_SECONDS)
        if answer.meaning is Meaning.BARRED:
            _log.warning("a comment was refused", extra={"code": Meaning.BARRED.value})
        if answer.meaning is Meaning.ACCEPTED:
            self.heard()
        return told(answer)

    async def _admit(
        self, delivery: Delivery, event: CommentEvent, subject: Subject, order: Order
    ) -> Answer:
        user, author = event.comment.user, event.issue.user
        if user is None or (author is not None and author.id == user.id):
            return await self.admission.set_aside(delivery, subject, Meaning.BARRED)
        command = Command(
            comment_id=str(event.comment.id),
            person_id=str(user.id),
            login=user.login,
            operation_id=order.operation_id,
            version=order.version,
            verdict=order.verdict,
            said_at=event.comment.created_at,
        )
        return await self.commands.admit(delivery, subject, command)
