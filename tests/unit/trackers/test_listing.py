"""A repository's issues, a page at a time, on every tracker that can list."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.commit_log import Action
from tests.fakes.github_shapes import number_of
from tests.unit.trackers.far_ends import NUMBER, GitHubEnd, LocalEnd, issue_of
from triage.storage.engine import Store
from triage.trackers import github_listing, github_reads
from triage.trackers.listing import Listed, ListedIssue, ListsIssues

NEWEST = Listed(by="created", oldest_first=False, only_open=False)
OLDEST = Listed(by="updated", oldest_first=True, only_open=True)


async def _listed(tracker: ListsIssues, repository: str, listed: Listed) -> list[ListedIssue]:
    """Return what is on all pages."""
    page = await tracker.issue_page(repository, listed)
    issues = [*page.issues]
    while page.following is not None:
        page = await tracker.issue_page(repository, listed, page.following)
        issues += page.issues
    return issues


async def _all(tracker: ListsIssues, repository: str, listed: Listed) -> list[str]:
    """Return the numbers on all pages."""
    return [issue.number for issue in await _listed(tracker, repository, listed)]


@pytest.fixture
async def local(store: Store) -> LocalEnd:
    """The local tracker with one issue."""
    end = LocalEnd(store)
    await end.open()
    return end


async def test_github_lists_issues_and_no_pull_requests(
    end: GitHubEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pages, in the order asked for, each issue as `get_issue` gives it; ids are GitHub's."""
    monkeypatch.setattr(github_listing, "PAGE_SIZE", 2)
    for number in ("102", "103", "104"):
        data = {"title": number, "body": "", "pull_request": number == "103"}
        await end.control.act(Action.OPENED, end.repository, number, data=data)
    await end.control.edit(end.repository, "104", state="closed")
    await end.adds("bug")
    tracker = end.over_github
    assert ["104", "102", NUMBER] == await _all(tracker, end.repository, NEWEST)
    assert {NUMBER, "102"} == set(await _all(tracker, end.repository, OLDEST))
    # Changed in the same second as the others or in a later one: on the first page, or the next.
    listed = await _listed(tracker, end.repository, OLDEST)
    [shown] = [issue for issue in listed if issue.number == NUMBER]
    issue = await issue_of(end)
    assert (issue.title, issue.body, issue.author, issue.labels) == (
        shown.title,
        shown.body,
        shown.author,
        shown.labels,
    )
    found = await tracker.repository(end.repository)
    assert (str(number_of(end.repository)), end.repository) == (found.id, found.name)
    assert 100 == github_reads.PAGE_SIZE


async def test_the_local_tracker_lists_its_issues(
    local: LocalEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, over its own tables."""
    monkeypatch.setattr("triage.trackers.local_listing.PAGE_SIZE", 2)
    for number in ("102", "103"):
        await local.local.create_issue(
            local.repository, title=number, body="", author="ann", number=number
        )
    await local.local.edit_issue(local.repository, "103", by="ann", state="closed")
    await local.adds("bug")
    assert ["103", "102", NUMBER] == await _all(local.local, local.repository, NEWEST)
    assert ["102", NUMBER] == await _all(local.local, local.repository, OLDEST)
    page = await local.local.issue_page(local.repository, NEWEST, {"start": "2"})
    assert ("bug",) == page.issues[0].labels


def test_what_lists_is_known(tmp_path: Path) -> None:
    """Both trackers are asked by the same protocol."""
    from triage.trackers.github import GitHubTracker  # noqa: PLC0415 - named here alone
    from triage.trackers.local import LocalTracker  # noqa: PLC0415 - likewise

    assert issubclass(GitHubTracker, ListsIssues)
    assert issubclass(LocalTracker, ListsIssues)
