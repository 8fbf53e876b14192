"""What people do with the local tracker, by command or in a test: none of it is open to a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import JsonValue
from sqlalchemy import delete, func, select, update
from sqlalchemy.engine import RowMapping

from triage.contracts.base import MAX_LABEL_CHARS
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.errors import StorageError
from triage.storage.schema import tracker_issue_labels, tracker_issues
from triage.trackers.base import (
    IssueNotFound,
    StoreUnavailable,
    TrackedIssue,
    TrackerRefused,
    TrackerUnavailable,
    is_label,
)
from triage.trackers.local_listing import repositories
from triage.trackers.local_rows import (
    IssueEvent,
    Label,
    add_event,
    events_of,
    find_issue,
    insert_issue,
    insert_label,
    known_labels,
    labels_on,
    put_on,
    repository_key,
    to_issue,
)


@dataclass(frozen=True, kw_only=True)
class IssueRecord:
    """An issue with everything that happened to it."""

    issue: TrackedIssue
    events: tuple[IssueEvent, ...]

    def to_dict(self) -> dict[str, JsonValue]:
        """The form that `triage issues show` prints."""
        return {
            "number": self.issue.number,
            "title": self.issue.title,
            "body": self.issue.body,
            "labels": list(self.issue.labels),
            "events": [event.to_dict() for event in self.events],
        }


class LocalIssues:
    """Issues, labels and their log, kept in `store`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def create_issue(
        self, repository: str, *, title: str, body: str, author: str, number: str | None = None
    ) -> TrackedIssue:
        """Open an issue, under the next free number unless one is given.

        Raises:
            TrackerRefused: the number is taken (``issue_exists``).
        """
        issue = {"repository": repository, "title": title, "body": body, "author": author}
        async with self._write() as connection:
            now = await self._store.now(connection)
            candidate = number or await _next_number(connection, repository)
            while not await insert_issue(connection, issue | {"number": candidate}, author, now):
                if number is not None:
                    raise TrackerRefused("issue_exists", "an issue with this number exists")
                candidate = str(int(candidate) + 1)
            return to_issue(await require_issue(connection, repository, candidate), [])

    async def show_issue(self, repository: str, number: str) -> IssueRecord | IssueNotFound:
        """Return the issue with its log of events."""
        async with self._read() as connection:
            row = await find_issue(connection, repository, number)
            if row is None:
                return IssueNotFound(repository=repository, number=number)
            issue = to_issue(row, await labels_on(connection, row["issue_key"]))
            return IssueRecord(
                issue=issue, events=tuple(await events_of(connection, row["issue_key"]))
            )

    async def list_issues(self, repository: str, limit: int = 1000) -> tuple[TrackedIssue, ...]:
        """Return a repository's issues, oldest first."""
        i = tracker_issues.c
        query = (
            select(tracker_issues)
            .where(i.repository_key == repository_key(repository))
            .order_by(i.created_at, i.issue_key)
            .limit(limit)
        )
        async with self._read() as connection:
            rows = (await connection.execute(query)).mappings().all()
            return tuple(
                [to_issue(row, await labels_on(connection, row["issue_key"])) for row in rows]
            )

    async def repositories(self, limit: int = 10) -> tuple[str, ...]:
        """Return the first repositories that have an issue, by their names."""
        async with self._read() as connection:
            return await repositories(connection, limit)

    async def seed_labels(self, repository: str, names: Iterable[str]) -> tuple[str, ...]:
        """Add labels to a repository's inventory; return those that were not there.

        Raises:
            TrackerRefused: a name is blank or has over 50 characters (``bad_label``).
        """
        async with self._write() as connection:
            now = await self._store.now(connection)
            return tuple(
                [
                    name
                    for name in names
                    if await insert_label(connection, repository, checked_label(name), now)
                ]
            )

    async def add_label(self, repository: str, number: str, label: str, *, by: str) -> None:
        """Put a label on an issue, as a person does: also one that was removed before.

        Raises:
            TrackerRefused: ``issue_not_found`` or ``unknown_label``.
        """
        async with self._write() as connection:
            row = await require_issue(connection, repository, number)
            found = await _require_label(connection, repository, label)
            if found in await labels_on(connection, row["issue_key"]):
                return
            now = await self._store.now(connection)
            await put_on(connection, row["issue_key"], [found], now)
            await add_event(
                connection, row["issue_key"], _label_event("added", found, by, now), found
            )

    async def remove_label(self, repository: str, number: str, label: str, *, by: str) -> None:
        """Take a label off an issue, as a person does; no run puts it back afterwards.

        Raises:
            TrackerRefused: ``issue_not_found``, ``unknown_label`` or ``label_not_on_issue``.
        """
        on = tracker_issue_labels.c
        async with self._write() as connection:
            row = await require_issue(connection, repository, number)
            found = await _require_label(connection, repository, label)
            gone = await connection.execute(
                delete(tracker_issue_labels).where(
                    on.issue_key == row["issue_key"], on.label_key == found.key
                )
            )
            if gone.rowcount == 0:
                raise TrackerRefused("label_not_on_issue", "the issue does not have this label")
            now = await self._store.now(connection)
            await add_event(
                connection, row["issue_key"], _label_event("removed", found, by, now), found
            )

    async def edit_issue(
        self,
        repository: str,
        number: str,
        *,
        by: str,
        title: str | None = None,
        body: str | None = None,
        state: Literal["open", "closed"] | None = None,
        locked: bool | None = None,
    ) -> TrackedIssue:
        """Change an issue, as a person does; what is None stays.

        Raises:
            TrackerRefused: there is no such issue (``issue_not_found``).
        """
        changes = {"title": title, "body": body, "state": state, "locked": locked}
        values = {name: value for name, value in changes.items() if value is not None}
        async with self._write() as connection:
            key = (await require_issue(connection, repository, number))["issue_key"]
            now = await self._store.now(connection)
            await connection.execute(
                update(tracker_issues)
                .where(tracker_issues.c.issue_key == key)
                .values(**values, updated_at=now)
            )
            await add_event(connection, key, IssueEvent(action="edited", by=by, at=now))
            row = await require_issue(connection, repository, number)
            return to_issue(row, await labels_on(connection, key))

    @asynccontextmanager
    async def _write(self, *, cancelled_is_undone: bool = False) -> AsyncIterator[AsyncConnection]:
        finished = False
        try:
            async with self._store.write() as connection:
                yield connection
                finished = True
        except asyncio.CancelledError:
            if finished or not cancelled_is_undone:
                raise
            raise TrackerUnavailable("it was cancelled", effect_possible=False) from None
        except StorageError as error:
            # Only a commit that was cut leaves it open whether anything happened.
            raise StoreUnavailable(str(error), effect_possible=finished) from None

    @asynccontextmanager
    async def _read(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with self._store.snapshot() as connection:
                yield connection
        except StorageError as error:
            raise StoreUnavailable(str(error), effect_possible=False) from None


async def require_issue(connection: AsyncConnection, repository: str, number: str) -> RowMapping:
    """Return an issue's row, locked until the transaction ends.

    Raises:
        TrackerRefused: there is no such issue (``issue_not_found``).
    """
    row = await find_issue(connection, repository, number, lock=True)
    if row is None:
        raise TrackerRefused("issue_not_found", "there is no such issue")
    return row


def checked_label(name: str) -> str:
    """Return a label name that an inventory may hold.

    Raises:
        TrackerRefused: it is blank or too long (``bad_label``).
    """
    if not is_label(name):
        raise TrackerRefused("bad_label", f"a label has 1 to {MAX_LABEL_CHARS} characters")
    return name


async def _require_label(connection: AsyncConnection, repository: str, name: str) -> Label:
    found = await known_labels(connection, repository, [name])
    if not found:
        raise TrackerRefused("unknown_label", "the repository has no such label")
    return next(iter(found.values()))


async def _next_number(connection: AsyncConnection, repository: str) -> str:
    query = select(func.count()).where(
        tracker_issues.c.repository_key == repository_key(repository)
    )
    return str((await connection.scalar(query) or 0) + 1)


def _label_event(action: str, label: Label, by: str, at: datetime) -> IssueEvent:
    return IssueEvent(action=action, label=label.name, by=by, at=at)
