"""Issues in bulk: for trackers that can list a repository's, a page at a time.

Why it exists: whoever looks for what was missed, or tries rules on what is there, reads thousands
of issues. So a page is asked for when it is wanted, and no list is ever held as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable


@dataclass(frozen=True, kw_only=True)
class ListedIssue:
    """An issue as a list shows it; pull requests are not listed."""

    number: str
    title: str
    body: str
    state: str
    author: str
    labels: tuple[str, ...]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class Listed:
    """What to list, and in which order.

    Attributes:
        by: what they are ordered by.
        oldest_first: the order.
        only_open: leaves closed ones out.
        since: leaves out what was not changed since then.
    """

    by: Literal["created", "updated"]
    oldest_first: bool
    only_open: bool
    since: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class IssuePage:
    """One page.

    Attributes:
        issues: what is on it.
        seen_to: the latest change of anything on it, whether it is an issue or not; None if it is
            empty.
        following: gets the next page; None after the last one.
    """

    issues: tuple[ListedIssue, ...]
    seen_to: datetime | None
    following: Mapping[str, str] | None


@dataclass(frozen=True, kw_only=True)
class ListedRepository:
    """A repository: its stable id, and its name as the tracker writes it."""

    id: str
    name: str


@runtime_checkable
class ListsIssues(Protocol):
    """A tracker that can list."""

    async def repository(self, repository: str) -> ListedRepository:
        """Return a repository.

        Raises:
            TrackerError: it is not there, or nobody can say.
        """
        ...

    async def issue_page(
        self, repository: str, listed: Listed, page: Mapping[str, str] | None = None
    ) -> IssuePage:
        """Return a page: the first one, or what `IssuePage.following` of another one asks for.

        Raises:
            TrackerError: it cannot be read.
        """
        ...
