"""Issues whose delivery never came are found by looking, once, and under the same rules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from tests.fakes.commit_log import Action
from tests.fakes.faults import rate_limited, refused
from tests.fakes.github_shapes import number_of
from tests.unit.trackers.far_ends import GitHubEnd, github_end
from tests.web.hooks import Hook, an_event
from triage.ingest import polling as polling_module
from triage.ingest.polling import CROWDED, OVERLAP, Polling
from triage.storage.admission import Admission
from triage.storage.schema import requests
from triage.trackers import github_listing
from triage.trackers.listing import IssuePage, Listed, ListedIssue, ListedRepository

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def end(tmp_path: Path) -> AsyncIterator[GitHubEnd]:
    """GitHub with one open issue."""
    async with github_end(tmp_path) as opened:
        yield opened


@pytest.fixture
def polling(end: GitHubEnd, light_hook: Hook, monkeypatch: pytest.MonkeyPatch) -> Polling:
    """What looks through it, beside a server for deliveries, two issues a page."""
    monkeypatch.setattr(github_listing, "PAGE_SIZE", 2)
    store = light_hook.store
    return Polling(
        tracker=end.over_github,
        tracker_name="github",
        store=store,
        admission=Admission(store, timedelta(days=1)),
        page_pause_seconds=0,
    )


async def _count(hook: Hook) -> int:
    async with hook.store.read() as connection:
        return int(await connection.scalar(select(func.count()).select_from(requests)) or 0)


async def test_what_no_delivery_brought_is_found_once(
    polling: Polling, end: GitHubEnd, light_hook: Hook
) -> None:
    """Over several pages, without pull requests and closed issues; a second look finds nothing."""
    for number in ("102", "103", "104", "105", "106"):
        data = {"title": number, "body": "", "pull_request": number == "103"}
        await end.control.act(Action.OPENED, end.repository, number, data=data)
    await end.control.edit(end.repository, "104", state="closed")
    look = await polling.look(end.repository, LONG_AGO)
    assert (4, True, "") == (look.admitted, look.is_whole, look.problem)
    again = await polling.look(end.repository)
    assert 0 == again.admitted
    assert 4 == await _count(light_hook)
    await end.control.edit(end.repository, "102", title="Another title")
    assert 1 == (await polling.look(end.repository)).admitted


async def test_what_a_delivery_brought_is_no_news(
    polling: Polling, end: GitHubEnd, light_hook: Hook
) -> None:
    """A label that was put on since changes the time, not the text: nothing is started."""
    event = an_event(title="Crash", body="It crashes.", at="2026-01-01T00:00:00Z")
    event["repository"]["id"] = number_of(end.repository)
    assert "accepted" == (await light_hook.send(event)).json()["outcome"]
    await end.adds("bug")
    look = await polling.look(end.repository, LONG_AGO)
    assert (1, 0) == (look.seen, look.admitted)
    assert 1 == await _count(light_hook)


async def test_the_first_look_begins_now(polling: Polling, end: GitHubEnd) -> None:
    """Turning it on triages no old issues: that is what a backfill is for."""
    polling.store._offset += timedelta(hours=1)
    look = await polling.look(end.repository)
    polling.store._offset -= timedelta(hours=1)
    assert (0, True) == (look.seen, look.is_whole)


async def test_a_first_look_that_breaks_off_has_begun(polling: Polling, end: GitHubEnd) -> None:
    """Where GitHub is away when it is turned on, what changes until it is back is found."""
    await end.control.plan(refused(500, method="GET", path=f"{end.repository}$"))
    assert "" != (await polling.look(end.repository)).problem
    await end.control.open_issue(end.repository, "102", title="Crash")
    polling.store._offset += timedelta(hours=1)
    look = await polling.look(end.repository)
    polling.store._offset -= timedelta(hours=1)
    assert (True, True) == (look.admitted > 0, look.is_whole)


async def test_a_look_is_bounded_and_goes_on(
    polling: Polling, end: GitHubEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository with more changes than a look takes is looked through by the next ones."""
    for number in ("102", "103", "104"):
        await end.control.open_issue(end.repository, number, title=number)
    with monkeypatch.context() as patched:
        patched.setattr(polling_module, "MAX_PAGES", 1)
        look = await polling.look(end.repository, LONG_AGO)
    assert (2, False) == (look.admitted, look.is_whole)
    look = await polling.look(end.repository)
    assert (2, True) == (look.admitted, look.is_whole)


async def test_a_repository_rests_as_long_as_github_says(polling: Polling, end: GitHubEnd) -> None:
    """A limit is no reason to ask again at once, nor to leave the other repositories out."""
    await end.control.plan(rate_limited("60", method="GET", path="/issues$"))
    [look] = await polling.look_through((end.repository,))
    assert (60.0, False) == (look.retry_after_seconds, look.is_whole)
    assert look.problem
    assert [] == await polling.look_through((end.repository,))
    polling._resting.clear()
    assert [True] == [look.is_whole for look in await polling.look_through((end.repository,))]


class Crowd:
    """A list, one issue a page; pages are numbered and ordered as GitHub's are."""

    def __init__(self, *moments: datetime) -> None:
        self.at = dict(enumerate(moments, 1))

    async def repository(self, repository: str) -> ListedRepository:
        """See `ListsIssues`."""
        return ListedRepository(id="7", name=repository)

    async def issue_page(
        self, repository: str, listed: Listed, page: Mapping[str, str] | None = None
    ) -> IssuePage:
        """See `ListsIssues`."""
        assert listed.since is not None
        rows = sorted((at, number) for number, at in self.at.items() if at >= listed.since)
        place = int((page or {}).get("page", "0"))
        found = tuple(_listed(str(number), at) for at, number in rows[place : place + 1])
        following = {"page": str(place + 1)} if place + 1 < len(rows) else None
        seen_to = max((issue.updated_at for issue in found), default=None)
        return IssuePage(issues=found, seen_to=seen_to, following=following)


class Moving(Crowd):
    """A list in which the first issue moves to the end once it was shown."""

    def __init__(self, apart: timedelta = timedelta(days=1)) -> None:
        super().__init__(*(LONG_AGO + apart * number for number in range(3)))
        self.shown: list[str] = []

    async def issue_page(
        self, repository: str, listed: Listed, page: Mapping[str, str] | None = None
    ) -> IssuePage:
        """See `ListsIssues`."""
        answer = await super().issue_page(repository, listed, page)
        self.shown += [issue.number for issue in answer.issues]
        if self.shown == ["1"] * (1 + (self.at[1] == self.at[2])):
            self.at[1] = LONG_AGO + timedelta(days=9)
        return answer


def _listed(number: str, at: datetime) -> ListedIssue:
    texts = {"title": f"Issue {number}", "body": "", "state": "open", "author": "ann"}
    return ListedIssue(number=number, labels=(), created_at=at, updated_at=at, **texts)


async def test_what_moves_meanwhile_hides_nothing(polling: Polling) -> None:
    """An issue that is changed between two pages moves others up: none of them is skipped."""
    moving = Moving()
    look = await replace(polling, tracker=moving).look("acme/moving", LONG_AGO)
    assert {"1", "2", "3"} == set(moving.shown)
    assert (3, True) == (look.admitted, look.is_whole)


async def test_what_leaves_a_crowd_hides_nothing(polling: Polling) -> None:
    """The pages of one moment are numbered: one that is changed meanwhile moves the others up."""
    moving = Moving(timedelta(0))
    look = await replace(polling, tracker=moving).look("acme/moving", LONG_AGO)
    assert {"1", "2", "3"} == set(moving.shown)
    assert (3, True) == (look.admitted, look.is_whole)


@pytest.mark.parametrize("apart", [timedelta(seconds=5), timedelta(0)])
async def test_no_crowd_hides_what_comes_after_it(
    apart: timedelta, polling: Polling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More changes than a look takes, within its overlap or in one moment, stall nothing."""
    monkeypatch.setattr(polling_module, "MAX_PAGES", 4)
    crowd = Crowd(*(LONG_AGO + apart * number for number in range(8)), LONG_AGO + OVERLAP * 9)
    crowded = replace(polling, tracker=crowd)
    looks = [await crowded.look("acme/crowd", LONG_AGO) for _ in range(9)]
    assert 9 == sum(look.admitted for look in looks)
    assert (True, "") == (looks[-1].is_whole, looks[-1].problem)


async def test_a_list_without_an_end_stalls_nothing(
    polling: Polling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that cannot get past one moment ends, says so, and the next one is past it."""
    monkeypatch.setattr(polling_module, "MAX_PAGES", 2)
    monkeypatch.setattr(polling_module, "MOST_PAGES", 4)
    crowd = Crowd(*(LONG_AGO for _ in range(8)), LONG_AGO + OVERLAP * 9)
    crowded = replace(polling, tracker=crowd)
    problems = [(await crowded.look("acme/crowd", LONG_AGO)).problem for _ in range(2)]
    assert ["", CROWDED] == problems
    look = await crowded.look("acme/crowd")
    assert (1, True, "") == (look.admitted, look.is_whole, look.problem)


async def test_an_issue_of_the_future_hides_nothing(polling: Polling) -> None:
    """A change that is said to be made in 2099 does not move the next look there."""
    crowd = Crowd(datetime(2099, 1, 1, tzinfo=UTC))
    crowded = replace(polling, tracker=crowd)
    assert 1 == (await crowded.look("acme/crowd", LONG_AGO)).admitted
    crowd.at[2] = datetime.now(UTC)
    assert 1 == (await crowded.look("acme/crowd")).admitted


async def test_what_changes_right_now_is_looked_at_again(
    polling: Polling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list may lag: what shows up late, behind the end of a look that is not whole, is found."""
    monkeypatch.setattr(polling_module, "MAX_PAGES", 2)
    now = datetime.now(UTC)
    crowd = Crowd(*(now - timedelta(seconds=30 - number) for number in range(4)))
    crowded = replace(polling, tracker=crowd)
    assert not (await crowded.look("acme/crowd", LONG_AGO)).is_whole
    crowd.at[5] = now - timedelta(seconds=60)
    assert 1 <= (await crowded.look("acme/crowd")).admitted
    async with polling.store.read() as connection:
        numbers = set(await connection.scalars(select(requests.c.number)))
    assert "5" in numbers
