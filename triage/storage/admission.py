"""What arrived from outside, recorded once, and which of it is to be triaged.

Why it exists: the same event comes twice, under two names, late, or out of order. One transaction
says what a delivery means beside everything that came before it, and leaves a request to start
behind it if it means something new. Whoever is answered has that row committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import func, insert, select, update
from sqlalchemy.engine import RowMapping

from triage.contracts.canonical import digest_of_bytes, short_hash
from triage.storage.connections import AsyncConnection
from triage.storage.documents import DocumentKind, keep
from triage.storage.engine import Store
from triage.storage.rows import first_row, insert_first
from triage.storage.schema import deliveries, requests


class Meaning(StrEnum):
    """What a delivery came to; anything but `ACCEPTED` starts nothing."""

    ACCEPTED = "accepted"
    UNCHANGED = "unchanged"
    """The text is what the newest version has, or this very change came before."""
    STALE = "stale"
    """A newer version is here already."""
    GONE = "gone"
    """The issue is no longer where it was: what was not started yet never will be."""
    UNUSABLE = "unusable"
    """The text cannot be a request."""
    BARRED = "barred"
    """Whoever it is from may not say this."""
    REUSED = "reused"
    """Something else came under this delivery id before; nothing was recorded."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The issue that a delivery is about.

    Attributes:
        tenant: whose it is.
        source: where it lives, such as ``github``.
        repository: its repository, as people write it.
        repository_id: that repository's own id, which a new name does not change.
        number: the issue's number there.
    """

    tenant: str
    source: str
    repository: str
    repository_id: str
    number: str

    @property
    def key(self) -> str:
        """A name that says nothing."""
        return short_hash("subject", self.tenant, self.source, self.repository_id, self.number)


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What arrived.

    Attributes:
        delivery_id: the name that the sender gave it.
        event: its kind.
        action: what happened to the issue.
        body_digest: over its bytes.
    """

    delivery_id: str
    event: str
    action: str
    body_digest: str


@dataclass(frozen=True, kw_only=True)
class Content:
    """The issue's text at one moment.

    Attributes:
        digest: over what counts as its text.
        at: when the source says that it changed last.
        document: what the run will be started with.
    """

    digest: str
    at: datetime
    document: bytes


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What became of a delivery.

    Attributes:
        meaning: what it came to, the first time that it arrived.
        request_key: the request that stands for the issue's text; None if there is none.
        repeated: whether it arrived before.
    """

    meaning: Meaning
    request_key: str | None
    repeated: bool = False


_ADMITTED: Final = "admitted"
_STATES: Final = {
    Meaning.ACCEPTED: _ADMITTED,
    Meaning.UNUSABLE: "refused",
    Meaning.BARRED: "refused",
}


class Admission:
    """Records deliveries in one store.

    Args:
        store: where.
        retention: how long the text of a request is kept.
    """

    def __init__(self, store: Store, retention: timedelta) -> None:
        self._store = store
        self._retention = retention

    async def admit(self, delivery: Delivery, subject: Subject, content: Content) -> Answer:
        """Record a delivery, and a request if its text is new.

        The newest text's request that could never be started is to be started anew: whoever sends
        a delivery again wants just that.

        Raises:
            StorageError: whether anything was recorded is open; the same delivery may come again.
        """
        async with self._store.write() as connection:
            await self._one_at_a_time(connection, subject)
            now = await self._store.now(connection)
            first = await first_answer(connection, delivery, subject, now)
            if first is not None and first.meaning is Meaning.REUSED:
                # Two hooks of one event share its id, and each has its own words around the text.
                # Only a text that is news needs an id of its own.
                newest = await _newest(connection, subject)
                return await _known(connection, subject, content, newest) or first
            newest = await _newest(connection, subject)
            answer = first or await _known(connection, subject, content, newest)
            if answer is not None and _has_failed(newest, answer):
                answer = await self._revive(connection, answer, content.document, now)
            elif first is not None:
                return first
            if answer is None:
                version = newest["version"] + 1 if newest else 1
                # With the delivery's id no restored or second store ever names another text so.
                parts = (subject.key, str(version), delivery.delivery_id)
                row = _row(subject, content, version, short_hash("request", *parts), now)
                answer = await self._accept(connection, subject, row, content.document)
            await conclude(connection, delivery, subject, answer)
        return answer

    async def set_aside(self, delivery: Delivery, subject: Subject, meaning: Meaning) -> Answer:
        """Record a delivery that asks for nothing; `GONE` also withdraws what was not tried yet.

        Raises:
            StorageError: likewise.
        """
        async with self._store.write() as connection:
            await self._one_at_a_time(connection, subject)
            now = await self._store.now(connection)
            if (first := await first_answer(connection, delivery, subject, now)) is not None:
                return first
            if meaning is Meaning.GONE:
                await _supersede(connection, subject, now, Meaning.GONE)
                await _remember_the_end(connection, delivery, subject, now)
            newest = await _newest(connection, subject)
            key = newest["request_key"] if newest else None
            answer = Answer(meaning=meaning, request_key=key)
            await conclude(connection, delivery, subject, answer)
        return answer

    async def _one_at_a_time(self, connection: AsyncConnection, subject: Subject) -> None:
        """Let deliveries on one issue go one after the other; SQLite has one writer anyway."""
        if not self._store.is_sqlite:
            number = int(subject.key[:15], 16)
            await connection.execute(select(func.pg_advisory_xact_lock(number)))

    async def _accept(
        self, connection: AsyncConnection, subject: Subject, row: dict[str, Any], document: bytes
    ) -> Answer:
        now, key = row["created_at"], row["request_key"]
        await _supersede(connection, subject, now, None)
        await self._keep(connection, key, document, now)
        await connection.execute(insert(requests).values(**row))
        return Answer(meaning=Meaning.ACCEPTED, request_key=key)

    async def _revive(
        self, connection: AsyncConnection, answer: Answer, document: bytes, now: datetime
    ) -> Answer:
        """Have a request started that never could be; a run that it has all the same is found."""
        key = answer.request_key or ""
        digest = await self._keep(connection, key, document, now)
        values = {"state": "accepted", "code": None, "document_digest": digest, "updated_at": now}
        mine = update(requests).where(requests.c.request_key == key)
        await connection.execute(mine.values(**values, next_attempt_at=None))
        return Answer(meaning=Meaning.ACCEPTED, request_key=key)

    async def _keep(
        self, connection: AsyncConnection, key: str, document: bytes, now: datetime
    ) -> str:
        kind, expires_at = DocumentKind.REQUEST, now + self._retention
        return await keep(connection, key, kind, document, now=now, expires_at=expires_at)


def _row(
    subject: Subject, content: Content, version: int, key: str, now: datetime
) -> dict[str, Any]:
    return {
        "request_key": key,
        "semantic_key": _semantic_key(subject, content),
        "tenant": subject.tenant,
        "source": subject.source,
        "repository": subject.repository,
        "number": subject.number,
        "subject_key": subject.key,
        "version": version,
        "content_digest": content.digest,
        "content_at": content.at,
        "document_digest": digest_of_bytes(content.document),
        "state": "accepted",
        "attempts": 0,
        "created_at": now,
        "updated_at": now,
    }


def _semantic_key(subject: Subject, content: Content) -> str:
    return short_hash(subject.key, content.digest, content.at.isoformat())


async def first_answer(
    connection: AsyncConnection, delivery: Delivery, subject: Subject, now: datetime
) -> Answer | None:
    """Return what was answered when this delivery came before, or record that it is here."""
    key = short_hash("delivery", subject.source, delivery.delivery_id)
    values = {
        "delivery_key": key,
        "source": subject.source,
        "tenant": subject.tenant,
        "repository": subject.repository,
        "number": subject.number,
        **vars(delivery),
        "state": "received",
        "times_seen": 1,
        "received_at": now,
        "updated_at": now,
    }
    if await insert_first(connection, deliveries, values):
        return None
    d = deliveries.c
    found = await first_row(connection, select(deliveries).where(d.delivery_key == key))
    if found is None or found["body_digest"] != delivery.body_digest:
        return Answer(meaning=Meaning.REUSED, request_key=None)
    again = update(deliveries).where(d.delivery_key == key)
    await connection.execute(again.values(times_seen=d.times_seen + 1, updated_at=now))
    meaning = Meaning(found["code"] or Meaning.ACCEPTED)
    return Answer(meaning=meaning, request_key=found["request_key"], repeated=True)


async def _newest(connection: AsyncConnection, subject: Subject) -> RowMapping | None:
    r = requests.c
    query = select(requests).where(r.subject_key == subject.key).order_by(r.version.desc())
    return await first_row(connection, query.limit(1))


async def _same_text(
    connection: AsyncConnection, subject: Subject, content: Content
) -> Answer | None:
    """Return the answer for this very change of the text, if it came before."""
    r = requests.c
    same = select(r.request_key).where(r.semantic_key == _semantic_key(subject, content))
    before = await first_row(connection, same)
    if before is None:
        return None
    return Answer(meaning=Meaning.UNCHANGED, request_key=before["request_key"])


async def _known(
    connection: AsyncConnection, subject: Subject, content: Content, newest: RowMapping | None
) -> Answer | None:
    """Return the answer for a text that is not new, or None."""
    if newest is None:
        return None
    if newest["code"] == Meaning.GONE:
        # No issue comes back under its number, so this one was only late.
        return Answer(meaning=Meaning.GONE, request_key=newest["request_key"])
    if (same := await _same_text(connection, subject, content)) is not None:
        return same
    r, key = requests.c, newest["request_key"]
    if content.at < newest["content_at"]:
        return Answer(meaning=Meaning.STALE, request_key=key)
    if content.digest != newest["content_digest"]:
        return None
    # It still said so at this later moment: what is older than that is stale from now on.
    await connection.execute(
        update(requests).where(r.request_key == key).values(content_at=content.at)
    )
    return Answer(meaning=Meaning.UNCHANGED, request_key=key)


async def _supersede(
    connection: AsyncConnection, subject: Subject, now: datetime, why: Meaning | None
) -> None:
    """Withdraw what nobody has tried to start; of the rest nobody knows what came of it."""
    r = requests.c
    waiting = (r.subject_key == subject.key, r.state == "accepted", r.attempts == 0)
    await connection.execute(
        update(requests).where(*waiting).values(state="superseded", code=why, updated_at=now)
    )


async def _remember_the_end(
    connection: AsyncConnection, delivery: Delivery, subject: Subject, now: datetime
) -> None:
    """Leave an issue's last version, which is without a text, unless there is one."""
    newest = await _newest(connection, subject)
    if newest is not None and newest["code"] == Meaning.GONE:
        return
    version = newest["version"] + 1 if newest else 1
    nothing = Content(digest="", at=now, document=b"")
    key = short_hash("request", subject.key, str(version), delivery.delivery_id)
    row = _row(subject, nothing, version, key, now)
    ended = {"state": "superseded", "code": Meaning.GONE.value, "document_digest": None}
    await connection.execute(insert(requests).values(**{**row, **ended}))


def _has_failed(newest: RowMapping | None, answer: Answer) -> bool:
    """Whether an answer names the newest text's request, and that could never be started."""
    if newest is None or newest["state"] != "failed":
        return False
    is_told = answer.meaning in {Meaning.ACCEPTED, Meaning.UNCHANGED}
    return is_told and answer.request_key == newest["request_key"]


async def conclude(
    connection: AsyncConnection, delivery: Delivery, subject: Subject, answer: Answer
) -> None:
    """Record what a delivery came to, in the caller's transaction."""
    key = short_hash("delivery", subject.source, delivery.delivery_id)
    accepted = answer.meaning is Meaning.ACCEPTED
    await connection.execute(
        update(deliveries)
        .where(deliveries.c.delivery_key == key)
        .values(
            state=_STATES.get(answer.meaning, "ignored"),
            code=None if accepted else answer.meaning.value,
            request_key=answer.request_key,
        )
    )
