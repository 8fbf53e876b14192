"""Old issues are tried by real runs, without effects, and a backfill goes on where it stopped."""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.workflow.world import World
from triage.cli.backfilling import put_report, telling
from triage.contracts.options import DEFAULT_TENANT, Mode
from triage.ingest.backfill import PREFIX, Backfill, Pace, Wanted
from triage.ingest.backfill_report import report_of
from triage.storage.admission import Subject
from triage.storage.backfills import BackfillHeldError, Backfills
from triage.trackers.base import TrackerUnavailable
from triage.trackers.listing import IssuePage, Listed, ListedRepository, ListsIssues
from triage.trackers.local import LocalTracker

CLOCK = 0.02
"""By so much the server's clock may tell two moments apart otherwise than ours."""
TEXTS = {
    "1": ("Crash", "Error: it crashes on start, see backend/api.py. Steps to reproduce: start it."),
    "2": ("Typo in the guide", "There is a typo in docs/getting-started.md, the documentation."),
    "3": ("Odd", "Something is odd."),
}


@dataclass
class Faulty:
    """A tracker whose list breaks off after some issues, once."""

    tracker: LocalTracker
    breaks_after: int | None = None

    async def repository(self, repository: str) -> ListedRepository:
        """See `ListsIssues`."""
        return await self.tracker.repository(repository)

    async def issue_page(
        self, repository: str, listed: Listed, page: Mapping[str, str] | None = None
    ) -> IssuePage:
        """See `ListsIssues`."""
        found = await self.tracker.issue_page(repository, listed, page)
        if self.breaks_after is None:
            return found
        if page is not None:
            raise TrackerUnavailable("gone", effect_possible=False)
        return replace(found, issues=found.issues[: self.breaks_after], following={"start": "0"})


@pytest.fixture
async def repository(world: World) -> str:
    """A repository of three issues, one of them labelled by a person."""
    name = f"acme/old-{uuid.uuid4().hex}"
    await world.tracker.seed_labels(name, ["bug", "documentation", "component:api"])
    for number, (title, body) in TEXTS.items():
        await world.tracker.create_issue(name, title=title, body=body, author="ann", number=number)
    await world.tracker.add_label(name, "1", "bug", by="ann")
    return name


def _backfill(world: World, tracker: ListsIssues, told: list[int]) -> Backfill:
    return Backfill(
        client=world.client,
        task_queue=world.queue,
        tracker=tracker,
        tracker_name="local",
        store=world.services.store,
        pace=Pace(parallel=2, per_minute=6_000, page_pause_seconds=0),
        told=told.append,
    )


def _wanted(repository: str, **changes: object) -> Wanted:
    wanted = Wanted(repository=repository, since=None, until=None, limit=100, mode=Mode.SHADOW)
    return replace(wanted, **changes)  # type: ignore[arg-type] # any field of it


async def test_every_issue_is_tried_and_nothing_is_written(
    world: World, repository: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real runs answer or abstain, people's labels stand beside, and no issue has changed."""
    told: list[int] = []
    outcome = await _backfill(world, world.tracker, told).run(_wanted(repository))
    assert {"1", "2", "3"} == set(outcome.results)
    assert [0, 1, 2, 3] == told
    assert ["bug"] == outcome.results["1"]["people"]
    assert outcome.results["1"]["policy"]
    for number in TEXTS:
        issue = await world.tracker.show_issue(repository, number)
        assert [] == [event for event in getattr(issue, "events", ()) if event.operation_key]
    report = report_of(outcome.results.values(), ["bug", "documentation"])
    assert 3 == report.issues == report.answered + report.abstained + report.failed
    put_report(_wanted(repository), report)
    shown = capsys.readouterr().out
    assert "3 issues" in shown
    assert "PROPOSED" in shown
    assert "crashes" not in shown + json.dumps(report.to_json())


async def test_it_goes_on_where_it_stopped(world: World, repository: str) -> None:
    """What was tried before the tracker broke off is kept, and only the rest is tried."""
    with pytest.raises(TrackerUnavailable):
        await _backfill(world, Faulty(world.tracker, 2), []).run(_wanted(repository))
    told: list[int] = []
    resumed: list[bool] = []
    backfill = _backfill(world, Faulty(world.tracker), told)
    backfill = replace(backfill, resumed=lambda: resumed.append(True))
    outcome = await backfill.run(_wanted(repository))
    assert [2, 3] == told
    assert [True] == resumed
    assert {"1", "2", "3"} == set(outcome.results)
    again = await backfill.run(_wanted(repository))
    assert [True] == resumed
    assert outcome.backfill_id != again.backfill_id


async def test_a_second_one_is_refused_while_one_is_under_way(
    world: World, repository: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins no run; the first one says that it lives, and lets go when it is ended."""
    said = asyncio.Event()
    hold = Backfills.hold

    async def held(kept: Backfills, backfill_id: str) -> None:
        await hold(kept, backfill_id)
        said.set()

    monkeypatch.setattr(Backfills, "hold", held)
    begun, going = asyncio.Event(), asyncio.Event()
    first = replace(_backfill(world, world.tracker, []), told=lambda _: begun.set())
    monkeypatch.setattr(Backfill, "_try", lambda *_: going.wait())
    task = asyncio.create_task(first.run(_wanted(repository)))
    await begun.wait()
    await said.wait()
    with pytest.raises(BackfillHeldError):
        await _backfill(world, world.tracker, []).run(_wanted(repository, limit=1))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    monkeypatch.undo()
    outcome = await _backfill(world, world.tracker, []).run(_wanted(repository))
    assert {"1", "2", "3"} == set(outcome.results)


async def test_a_range_and_a_limit_leave_the_others_out(world: World, repository: str) -> None:
    """Times are those of the opening, and the newest come first."""
    now = datetime.now(UTC)
    backfill = _backfill(world, world.tracker, [])
    assert 1 == len((await backfill.run(_wanted(repository, limit=1))).results)
    later = _wanted(repository, since=now + timedelta(hours=1))
    assert {} == (await backfill.run(later)).results
    earlier = _wanted(repository, until=now - timedelta(hours=1))
    assert {} == (await backfill.run(earlier)).results


async def test_runs_begin_at_the_pace_that_was_asked_for(world: World, repository: str) -> None:
    """At 300 a minute 0.2 s lie between two; one at a time begins when the one before ended.

    A start may take its time to reach the server, and come to lie near the next one: what holds on
    every machine is how soon after the beginning of all one can be there.
    """
    began = datetime.now(UTC)
    slow = await _spans(world, repository, Pace(parallel=9, per_minute=300, page_pause_seconds=0))
    after = [(begin - began).total_seconds() for begin, _ in slow]
    assert all(seconds >= 0.2 * n - CLOCK for n, seconds in enumerate(after)), after
    pace = Pace(parallel=1, per_minute=60_000, page_pause_seconds=0)
    lonely = await _spans(world, repository, pace)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(lonely)), lonely


async def _spans(world: World, repository: str, pace: Pace) -> list[tuple[datetime, datetime]]:
    """Try the issues at a pace; return from when to when each run went, in their order."""
    backfill = replace(_backfill(world, world.tracker, []), pace=pace)
    outcome = await backfill.run(_wanted(repository))
    return sorted([await _span(world, outcome.backfill_id, repository, n) for n in TEXTS])


async def _span(
    world: World, backfill_id: str, repository: str, number: str
) -> tuple[datetime, datetime]:
    """From when to when a run of a backfill went, by the server."""
    subject = Subject(
        tenant=DEFAULT_TENANT,
        source="local",
        repository=repository,
        repository_id=repository,
        number=number,
    )
    handle = world.client.get_workflow_handle(f"{PREFIX}{backfill_id}-{subject.key}")
    found = await handle.describe()
    assert found.close_time is not None
    return found.start_time, found.close_time


def test_progress_is_told_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """Where no bar can be shown, a line says how far it is: at first, and after so many."""
    with telling(100) as told:
        for done in range(1, 51):
            told(done)
    assert ["1 issues", "25 issues", "50 issues"] == capsys.readouterr().err.splitlines()
