"""What the local tracker has: repositories, and their issues a page at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy import select
from sqlalchemy.engine import RowMapping

from triage.storage.connections import AsyncConnection
from triage.storage.schema import tracker_issues, tracker_labels
from triage.trackers.listing import IssuePage, Listed, ListedIssue
from triage.trackers.local_rows import labels_on, repository_key

PAGE_SIZE: Final = 100


async def local_page(
    connection: AsyncConnection, repository: str, listed: Listed, page: Mapping[str, str] | None
) -> IssuePage:
    """Return one page."""
    t = tracker_issues.c
    start = int((page or {}).get("start", "0"))
    by = t.updated_at if listed.by == "updated" else t.created_at
    query = select(tracker_issues).where(t.repository_key == repository_key(repository))
    if listed.only_open:
        query = query.where(t.state == "open")
    if listed.since is not None:
        query = query.where(t.updated_at >= listed.since)
    order = (by, t.issue_key) if listed.oldest_first else (by.desc(), t.issue_key.desc())
    cut = query.order_by(*order).offset(start).limit(PAGE_SIZE)
    rows = (await connection.execute(cut)).mappings().all()
    return IssuePage(
        issues=tuple([await _issue(connection, row) for row in rows]),
        seen_to=max((row["updated_at"] for row in rows), default=None),
        following={"start": str(start + PAGE_SIZE)} if len(rows) == PAGE_SIZE else None,
    )


async def is_known(connection: AsyncConnection, repository: str) -> bool:
    """Whether anything is in a repository: an issue, or a label."""
    key = repository_key(repository)
    issues = select(tracker_issues.c.issue_key).where(tracker_issues.c.repository_key == key)
    labels = select(tracker_labels.c.label_key).where(tracker_labels.c.repository_key == key)
    return await connection.scalar(select(issues.exists() | labels.exists())) is True


async def repositories(connection: AsyncConnection, limit: int) -> tuple[str, ...]:
    """Return the first names of repositories that have an issue, sorted."""
    name = tracker_issues.c.repository
    found = await connection.scalars(select(name).distinct().order_by(name).limit(limit))
    return tuple(found)


async def _issue(connection: AsyncConnection, row: RowMapping) -> ListedIssue:
    labels = await labels_on(connection, row["issue_key"])
    names = ("number", "title", "body", "state", "author", "created_at", "updated_at")
    return ListedIssue(**{name: row[name] for name in names}, labels=tuple(x.name for x in labels))
