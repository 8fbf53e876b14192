"""The local tracker's rows: how issues, labels and events are found and written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from pydantic import JsonValue
from sqlalchemy import BindParameter, bindparam, func, insert, select, update
from sqlalchemy.engine import RowMapping

from triage.contracts.canonical import digest_of, short_hash
from triage.storage.connections import AsyncConnection
from triage.storage.rows import insert_first
from triage.storage.schema import (
    tracker_events,
    tracker_issue_labels,
    tracker_issues,
    tracker_labels,
)
from triage.trackers.base import TrackedIssue, content_digest
from triage.trackers.base import label_key as shared_key
from triage.trackers.inventory import Inventory, RepositoryLabel

# Built once, since to build a statement takes longer than to run it.
_WHICH: Final[BindParameter[str]] = bindparam("of")
_EVENTS: Final = tracker_events.c
_ON: Final = tracker_issue_labels.c
_OF: Final = tracker_labels.c
_ISSUE: Final = select(tracker_issues).where(tracker_issues.c.issue_key == _WHICH)
_LOCKED_ISSUE: Final = _ISSUE.with_for_update()
_TOUCH: Final = update(tracker_issues).where(tracker_issues.c.issue_key == _WHICH)
_LABELS: Final = select(_OF.label_key, _OF.name, _OF.created_at)
_LABELS_ON: Final = (
    _LABELS.join_from(tracker_issue_labels, tracker_labels, _ON.label_key == _OF.label_key)
    .where(_ON.issue_key == _WHICH)
    .order_by(_ON.position)
)
_INVENTORY: Final = _LABELS.where(_OF.repository_key == _WHICH)
_ANY_LABEL: Final = _INVENTORY.limit(1)
_LAST_LABEL: Final = select(func.max(_ON.position)).where(_ON.issue_key == _WHICH)
_PUT_ON: Final = insert(tracker_issue_labels)
_INSERT_EVENT: Final = insert(tracker_events)
_EVENTS_OF: Final = select(tracker_events).where(_EVENTS.issue_key == _WHICH).order_by(_EVENTS.seq)
_LABEL_EVENTS_OF: Final = (
    select(_EVENTS.label_key, _EVENTS.action)
    .where(_EVENTS.issue_key == _WHICH, _EVENTS.label_key.is_not(None))
    .order_by(_EVENTS.seq)
)
_LABEL_IDS_KEPT: Final = 4_096
_LAST_EVENT: Final = select(func.max(_EVENTS.seq)).where(_EVENTS.issue_key == _WHICH)


@dataclass(frozen=True, kw_only=True)
class IssueEvent:
    """One thing that happened to an issue.

    Attributes:
        action: ``created``, ``edited``, ``added`` or ``removed``.
        label: which label, for the last two.
        by: who did it.
        at: when, by the database's clock.
        operation_key: the write that it belongs to, if a run did it.
    """

    action: str
    by: str
    at: datetime
    label: str | None = None
    operation_key: str | None = None

    def to_dict(self) -> dict[str, JsonValue]:
        """The form that people and programs are shown."""
        at = self.at.isoformat()
        return {"label": self.label, "action": self.action, "by": self.by, "at": at}


@dataclass(frozen=True, kw_only=True)
class Label:
    """A label of a repository: its key, which ignores letter case, its spelling and its age."""

    key: str
    name: str
    created_at: datetime

    @property
    def id(self) -> str:
        """What no other label gets, not even one that is made under its name later."""
        return _label_id(self.key, self.created_at)


@lru_cache(_LABEL_IDS_KEPT)
def _label_id(key: str, created_at: datetime) -> str:
    """Return a label's id; kept, since a write reads all labels of its repository several times."""
    return short_hash(key, created_at.isoformat())


def issue_key(repository: str, number: str) -> str:
    """The key of an issue."""
    return digest_of([repository, number])


def repository_key(repository: str) -> str:
    """The key of a repository."""
    return digest_of(repository)


def label_key(repository: str, name: str) -> str:
    """The key of a label: the same whatever its letter case or Unicode composition."""
    return digest_of([repository, shared_key(name)])


async def insert_issue(
    connection: AsyncConnection, issue: dict[str, str], by: str, now: datetime
) -> TrackedIssue | None:
    """Insert an open issue with its first event and return it; None if there is one already."""
    key = issue_key(issue["repository"], issue["number"])
    values = {
        **issue,
        "issue_key": key,
        "repository_key": repository_key(issue["repository"]),
        "state": "open",
        "locked": False,
        "created_at": now,
        "updated_at": now,
    }
    if not await insert_first(connection, tracker_issues, values):
        return None
    # Nothing can have happened to it before, and every run begins here: two statements less.
    created = _event_values(key, 1, IssueEvent(action="created", by=by, at=now), None)
    await connection.execute(_INSERT_EVENT, created)
    return to_issue(values, [])


async def find_issue(
    connection: AsyncConnection, repository: str, number: str, *, lock: bool = False
) -> RowMapping | None:
    """Return an issue's row; with `lock`, nobody else changes it until the transaction ends."""
    query = _LOCKED_ISSUE if lock else _ISSUE
    found = await connection.execute(query, {"of": issue_key(repository, number)})
    return found.mappings().first()


async def labels_on(connection: AsyncConnection, key: str) -> list[Label]:
    """Return the labels on an issue, in the order in which they came."""
    return [_label(row) for row in (await connection.execute(_LABELS_ON, {"of": key})).mappings()]


async def known_labels(
    connection: AsyncConnection, repository: str, names: Iterable[str]
) -> dict[str, Label]:
    """Return those of `names` that exist in a repository, by key."""
    of = tracker_labels.c
    keys = {label_key(repository, name) for name in names}
    query = select(of.label_key, of.name, of.created_at).where(of.label_key.in_(keys))
    rows = (await connection.execute(query)).mappings()
    return {row["label_key"]: _label(row) for row in rows}


async def labels_of(connection: AsyncConnection, repository: str) -> list[Label]:
    """Return a repository's labels."""
    rows = await connection.execute(_INVENTORY, {"of": repository_key(repository)})
    return [*map(_label, rows.mappings())]


def inventory(labels: Iterable[Label]) -> Inventory:
    """Return a repository's labels as every tracker gives them."""
    return Inventory(RepositoryLabel(label.id, label.name) for label in labels)


async def has_labels(connection: AsyncConnection, repository: str) -> bool:
    """Return whether a repository has any label."""
    rows = await connection.execute(_ANY_LABEL, {"of": repository_key(repository)})
    return rows.first() is not None


def _label(row: RowMapping) -> Label:
    return Label(key=row["label_key"], name=row["name"], created_at=row["created_at"])


async def insert_label(
    connection: AsyncConnection, repository: str, name: str, now: datetime
) -> bool:
    """Add a label to a repository's inventory; return whether it was not there."""
    values = {
        "label_key": label_key(repository, name),
        "repository_key": repository_key(repository),
        "name": name,
        "created_at": now,
    }
    return await insert_first(connection, tracker_labels, values)


async def put_on(
    connection: AsyncConnection, key: str, labels: Sequence[Label], now: datetime
) -> None:
    """Put labels on a locked issue, after those that are there and in their order."""
    last = await connection.scalar(_LAST_LABEL, {"of": key}) or 0
    places = [
        {"issue_key": key, "label_key": label.key, "position": position, "added_at": now}
        for position, label in enumerate(labels, last + 1)
    ]
    await connection.execute(_PUT_ON, places)


async def events_of(connection: AsyncConnection, key: str) -> list[IssueEvent]:
    """Return everything that happened to an issue, oldest first."""
    return [
        IssueEvent(
            action=row["action"],
            label=row["label"],
            by=row["by"],
            at=row["at"],
            operation_key=row["operation_key"],
        )
        for row in (await connection.execute(_EVENTS_OF, {"of": key})).mappings()
    ]


async def removed_from(connection: AsyncConnection, key: str) -> set[str]:
    """Return the keys of labels whose last event on an issue is that somebody removed them."""
    rows = await connection.execute(_LABEL_EVENTS_OF, {"of": key})
    last = {row.label_key: row.action for row in rows}
    return {label for label, action in last.items() if action == "removed"}


async def add_event(
    connection: AsyncConnection, key: str, event: IssueEvent, label: Label | None = None
) -> None:
    """Append to the log of a locked issue, and note that it changed."""
    await add_events(connection, key, [(event, label)])


async def add_events(
    connection: AsyncConnection, key: str, events: Sequence[tuple[IssueEvent, Label | None]]
) -> None:
    """Append several to the log of a locked issue, in their order; each with its label."""
    last = await connection.scalar(_LAST_EVENT, {"of": key}) or 0
    rows = [_event_values(key, seq, *one) for seq, one in enumerate(events, last + 1)]
    await connection.execute(_INSERT_EVENT, rows)
    await connection.execute(_TOUCH, {"of": key, "updated_at": events[-1][0].at})


def _event_values(key: str, seq: int, event: IssueEvent, label: Label | None) -> dict[str, Any]:
    return {
        "issue_key": key,
        "seq": seq,
        "action": event.action,
        "label": event.label,
        "label_key": None if label is None else label.key,
        "by": event.by,
        "operation_key": event.operation_key,
        "at": event.at,
    }


def to_issue(row: RowMapping | Mapping[str, Any], labels: Sequence[Label]) -> TrackedIssue:
    """An issue's row and labels as every tracker gives them."""
    return TrackedIssue(
        repository=row["repository"],
        number=row["number"],
        title=row["title"],
        body=row["body"],
        state=row["state"],
        locked=row["locked"],
        labels=tuple(label.name for label in labels),
        label_ids=tuple(label.id for label in labels),
        author=row["author"],
        content_digest=content_digest(
            row["title"], row["body"], row["state"], locked=row["locked"]
        ),
    )
