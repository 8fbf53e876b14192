"""What people said in comments, recorded once, and carried to the runs that wait for it.

Why it exists: an answer that was accepted from GitHub must reach its run although the server was
away, and the same comment must not count twice, under whatever delivery id it comes again. A row is
held for a lease, as those of the outbox are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import func, or_, select, update
from sqlalchemy.engine import RowMapping

from triage.contracts.approval import Verdict
from triage.contracts.canonical import short_hash
from triage.storage.admission import Answer, Delivery, Meaning, Subject, conclude, first_answer
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.rows import first_row, insert_first
from triage.storage.schema import requests
from triage.storage.schema_intake import commands

DEFAULT_LEASE_SECONDS: Final = 60.0
"""Longer than an attempt takes."""
MAX_AGE: Final = timedelta(hours=1)
"""An older comment is no answer any more: it may be a recording that somebody sends again."""
UNREADABLE: Final = "unreadable"
_UNREADABLE: Final = (ValueError, TypeError)
_SAID: Final = (
    "command_key",
    "tenant",
    "repository",
    "number",
    "person_id",
    "login",
    "operation_id",
    "version",
    "said_at",
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """One person's answer.

    Attributes:
        comment_id: the comment's own id.
        person_id: who said it: the stable id.
        login: the name.
        operation_id: which operation.
        version: at which version of the run.
        verdict: what was said.
        said_at: when, by the source's clock.
    """

    comment_id: str
    person_id: str
    login: str
    operation_id: str
    version: int
    verdict: Verdict
    said_at: datetime


@dataclass(frozen=True, kw_only=True)
class HeldCommand:
    """An answer that this process holds.

    Attributes:
        command_key: which one.
        attempts: how often it was taken, this time included.
        tenant: whose it is.
        repository: where it was said.
        number: on which issue.
        workflow_id: the run that has the issue's newest text; None if none has.
        sent_to: the run that it was sent to by an attempt whose outcome nobody here learned.
        is_starting: whether a text of the issue was sent to the server, and nobody here knows yet
            which run has it.
        age: how old the comment is.
    """

    command_key: str
    attempts: int
    tenant: str
    repository: str
    number: str
    workflow_id: str | None
    sent_to: str | None
    is_starting: bool
    age: timedelta
    person_id: str
    login: str
    operation_id: str
    version: int
    verdict: Verdict
    said_at: datetime


class Commands:
    """The answers in one store.

    Args:
        store: where they are.
        lease_seconds: how long one is held.
    """

    def __init__(self, store: Store, lease_seconds: float = DEFAULT_LEASE_SECONDS) -> None:
        self._store = store
        self._lease = timedelta(seconds=lease_seconds)

    async def admit(self, delivery: Delivery, subject: Subject, command: Command) -> Answer:
        """Record a delivery, and an answer if the comment is new.

        Raises:
            StorageError: whether anything was recorded is open; the same delivery may come again.
        """
        key = short_hash("command", subject.source, subject.repository_id, command.comment_id)
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            if (first := await first_answer(connection, delivery, subject, now)) is not None:
                return first
            values = _values(key, subject, command, now)
            is_new = await insert_first(connection, commands, values)
            meaning = Meaning.ACCEPTED if is_new else Meaning.UNCHANGED
            answer = Answer(meaning=meaning, request_key=key)
            await conclude(connection, delivery, subject, answer)
        return answer

    async def take(self) -> HeldCommand | None:
        """Hold the answer that has waited longest, or return None if none is due.

        One that somebody edited so that it cannot be read counts for nothing, and holds up nobody.
        """
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            while (key := await connection.scalar(_due(now))) is not None:
                if (held := await self._hold(connection, key, now)) is not None:
                    return held
        return None

    async def _hold(
        self, connection: AsyncConnection, key: str, now: datetime
    ) -> HeldCommand | None:
        """Hold an answer; None if it cannot be read, which it never will be."""
        mine = commands.c.command_key == key
        try:
            found = await first_row(connection, select(commands).where(mine))
            held = None if found is None else await self._held(connection, found, now)
        except _UNREADABLE:
            held = None
        values = {"state": "refused", "code": UNREADABLE} if held is None else {}
        due = None if held is None else now + self._lease
        attempts = 1 if held is None else held.attempts
        changed = {**values, "attempts": attempts, "next_attempt_at": due, "updated_at": now}
        await connection.execute(update(commands).where(mine).values(**changed))
        return held

    async def _held(
        self, connection: AsyncConnection, found: RowMapping, now: datetime
    ) -> HeldCommand:
        subject = found["subject_key"]
        run = await first_row(connection, _run_of(subject))
        starting = await first_row(connection, _starting(subject))
        return HeldCommand(
            **{name: found[name] for name in _SAID},
            verdict=Verdict(found["verdict"]),
            attempts=found["attempts"] + 1,
            workflow_id=None if run is None else run["workflow_id"],
            sent_to=found["workflow_id"],
            is_starting=starting is not None,
            age=now - found["said_at"],
        )

    async def sending(self, held: HeldCommand, workflow_id: str) -> bool:
        """Record which run it goes to, before it goes; False if somebody else holds it by now.

        Every later attempt asks that run first whether it has the answer, and goes to no other.
        """
        async with self._store.write() as connection:
            done = await connection.execute(
                update(commands).where(*_mine(held)).values(workflow_id=workflow_id)
            )
        return done.rowcount == 1

    async def accepted(self, held: HeldCommand) -> bool:
        """Record that the run took it; False if somebody else holds it by now."""
        return await self._conclude(held, state="accepted", code=None)

    async def refused(self, held: HeldCommand, code: str) -> bool:
        """Record that it does not count, and why; likewise."""
        return await self._conclude(held, state="refused", code=code)

    async def later(self, held: HeldCommand, code: str, seconds: float) -> bool:
        """Let go of it for some seconds; likewise."""
        return await self._conclude(held, code=code, wait=timedelta(seconds=seconds))

    async def counts(self) -> dict[str, int]:
        """Return how many answers there are, by state, and of refused ones by code."""
        c = commands.c
        query = select(c.state, c.code, func.count()).group_by(c.state, c.code)
        async with self._store.read() as connection:
            rows = (await connection.execute(query)).all()
        counted: dict[str, int] = {}
        for state, code, number in rows:
            name = f"{state}/{code}" if state == "refused" else state
            counted[name] = counted.get(name, 0) + number
        return counted

    async def _conclude(
        self,
        held: HeldCommand,
        *,
        wait: timedelta | None = None,
        **values: Any,  # noqa: ANN401 - column values
    ) -> bool:
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            due = None if wait is None else now + wait
            done = await connection.execute(
                update(commands)
                .where(*_mine(held))
                .values(**values, next_attempt_at=due, updated_at=now)
            )
        return done.rowcount == 1


def _due(now: datetime) -> Any:  # noqa: ANN401 - a query of any rows
    c = commands.c
    return (
        select(c.command_key)
        .where(c.state == "waiting", or_(c.next_attempt_at.is_(None), c.next_attempt_at <= now))
        # Since it was put off, if it was: nobody's answer is always in front.
        .order_by(func.coalesce(c.next_attempt_at, c.created_at), c.command_key)
        .limit(1)
        .with_for_update(skip_locked=True)
    )


def _mine(held: HeldCommand) -> tuple[Any, ...]:
    c = commands.c
    return (
        c.command_key == held.command_key,
        c.state == "waiting",
        c.attempts == held.attempts,
    )


def _values(key: str, subject: Subject, command: Command, now: datetime) -> dict[str, Any]:
    return {
        "command_key": key,
        "source": subject.source,
        "tenant": subject.tenant,
        "repository": subject.repository,
        "number": subject.number,
        "subject_key": subject.key,
        "person_id": command.person_id,
        "login": command.login,
        "operation_id": command.operation_id,
        "version": command.version,
        "verdict": command.verdict.value,
        "said_at": command.said_at,
        "state": "waiting",
        "attempts": 0,
        "created_at": now,
        "updated_at": now,
    }


def _run_of(subject_key: str) -> Any:  # noqa: ANN401 - a query of any rows
    r = requests.c
    return (
        select(r.workflow_id)
        .where(r.subject_key == subject_key, r.state == "started")
        .order_by(r.version.desc())
        .limit(1)
    )


def _starting(subject_key: str) -> Any:  # noqa: ANN401 - a query of any rows
    r = requests.c
    tried = (r.subject_key == subject_key, r.state == "accepted", r.attempts > 0)
    return select(r.request_key).where(*tried).limit(1)
