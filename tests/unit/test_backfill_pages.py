"""A backfill reads a list to its end, and no list without one for ever."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from triage.contracts.options import Mode
from triage.ingest import backfill
from triage.ingest.backfill import Backfill, Pace, Wanted
from triage.trackers.base import TrackerUnavailable
from triage.trackers.listing import IssuePage, Listed, ListedIssue, ListedRepository

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WANTED = Wanted(repository="acme/shop", since=None, until=None, limit=1_000, mode=Mode.SHADOW)


class Book:
    """Pages of issue numbers; after the last one comes what `after` says."""

    def __init__(self, pages: list[list[int]], *, lost: bool, fresh: bool) -> None:
        self.pages, self.lost, self.fresh, self.asked = pages, lost, fresh, 0

    async def repository(self, repository: str) -> ListedRepository:
        """See `ListsIssues`."""
        return ListedRepository(id="7", name=repository)

    async def issue_page(
        self, _repository: str, _listed: Listed, _page: Mapping[str, str] | None = None
    ) -> IssuePage:
        """See `ListsIssues`."""
        at = min(self.asked, len(self.pages) - 1)
        self.asked += 1
        is_last = at == len(self.pages) - 1
        following = None if is_last and not self.lost else {"page": str(at)}
        if self.fresh and following:
            following = {"after": str(self.asked)}
        issues = tuple(_issue(number) for number in self.pages[at])
        return IssuePage(issues=issues, seen_to=NOW, following=following)


def _issue(number: int) -> ListedIssue:
    texts = {"title": "A title", "body": "", "state": "open", "author": "ann"}
    return ListedIssue(number=str(number), labels=(), created_at=NOW, updated_at=NOW, **texts)


async def _numbers(book: Book) -> list[str]:
    missing = cast("Any", None)
    carried = Backfill(
        client=missing,
        task_queue="queue",
        tracker=book,
        tracker_name="github",
        store=missing,
        pace=Pace(page_pause_seconds=0),
        told=print,
    )
    found = carried._issues(WANTED)
    async with aclosing(cast("Any", found)):
        return [issue.number async for issue in found]


async def test_pages_of_pull_requests_and_moved_issues_end_nothing() -> None:
    """A page without an issue, or with one that moved there meanwhile, is no end."""
    book = Book([[3, 2], [], [2], [], [2, 1]], lost=False, fresh=True)
    assert ["3", "2", "1"] == await _numbers(book)


@pytest.mark.parametrize(
    ("pages", "fresh", "most"), [([[1]], False, 2), ([[1]], True, 11), ([[]], True, 20)]
)
async def test_a_list_without_an_end_is_given_up(
    pages: list[list[int]], fresh: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that names the same page again, shows the same issues, or goes on for ever."""
    monkeypatch.setattr(backfill, "MAX_PAGES", 20)
    book = Book(pages, lost=True, fresh=fresh)
    with pytest.raises(TrackerUnavailable):
        await _numbers(book)
    assert most == book.asked
