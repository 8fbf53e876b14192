"""How long a call to GitHub may take, and what is known of one that took too long."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from time import monotonic
from typing import Any

import pytest

from tests.clock import ahead
from tests.fakes.commit_log import Action
from tests.fakes.faults import Fault, Reply, dropped_after, dropped_before
from tests.unit.trackers.far_ends import (
    LABELS,
    NUMBER,
    REQUEST_SECONDS,
    WRITE_SECONDS,
    GitHubEnd,
    github_tracker,
)
from triage.trackers import github, github_wire
from triage.trackers.base import LabelsAdded, TrackerTimeout, TrackerUnavailable
from triage.trackers.github import GitHubTracker
from triage.trackers.github_plan import Plan, plan

READS: dict[str, Any] = {"method": "GET", "path": ""}
ISSUE: dict[str, Any] = {"method": "GET", "path": rf"/issues/{NUMBER}$"}


async def _add(end: GitHubEnd, *labels: str, tracker: GitHubTracker | None = None) -> LabelsAdded:
    return await (tracker or end.over_github).add_labels(
        end.repository, NUMBER, labels or ("bug",), by="bounded-triage", operation_key="op_1"
    )


async def _labelled(end: GitHubEnd) -> list[str | None]:
    """The labels that were put on, in the order of their commits."""
    return [e.label for e in await end.control.log() if e.action is Action.LABELED]


@pytest.mark.parametrize(
    "fault",
    [
        dropped_before(Reply.SILENCE),
        dropped_after(Reply.SILENCE),
        Fault(reply=Reply.DRIP),
        Fault(after_ms=60_000),
    ],
    ids=["silent", "silent after", "drip", "slow after"],
)
async def test_one_deadline_covers_everything(end: GitHubEnd, fault: Fault) -> None:
    """A write that is not answered in time is neither done nor not done, also when bytes drip."""
    await end.control.plan(fault)
    adding = asyncio.create_task(_add(end))
    await end.control.requested("POST")
    with ahead(REQUEST_SECONDS + 1), pytest.raises(TrackerTimeout):
        await adding


async def test_a_read_that_is_not_answered_says_so(end: GitHubEnd) -> None:
    """Reading an issue has a deadline too."""
    await end.control.plan(dropped_before(Reply.SILENCE, **READS))
    tracker = github_tracker(end.github, request_seconds=0.5)
    with pytest.raises(TrackerTimeout):
        await tracker.get_issue(end.repository, NUMBER)


async def test_a_write_that_is_cancelled_before_it_was_sent_says_so(end: GitHubEnd) -> None:
    """Whoever ends the call while it still reads learns that nothing was done."""
    await end.control.plan(Fault(before_ms=60_000, **ISSUE))
    with pytest.raises(TrackerUnavailable) as error:
        async with asyncio.timeout(0.3):
            await _add(end)
    assert not error.value.effect_possible
    assert [] == await end.control.requests("POST")


async def test_a_write_that_is_cancelled_after_it_was_sent_proves_nothing(end: GitHubEnd) -> None:
    """Then the caller's own timeout is all that is known."""
    await end.control.plan(Fault(after_ms=60_000))
    before = len(await end.control.log())

    limit = asyncio.timeout(None)

    async def end_once_it_is_done() -> None:
        await end.control.log(before, wait=True)
        limit.reschedule(asyncio.get_running_loop().time())

    ending = asyncio.create_task(end_once_it_is_done())
    with pytest.raises(TimeoutError):
        async with limit:
            await _add(end)
    await ending
    assert ["bug"] == await _labelled(end)


async def test_a_process_that_was_stopped_too_long_sends_nothing(
    end: GitHubEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline is looked at right before the first byte, not only by a timer."""
    peers: list[str] = []

    with ExitStack() as passing:

        def stand_still(address: str, peer: str) -> bool:
            peers.append(peer)
            # The three before it read.
            if len(peers) == 4:
                passing.enter_context(ahead(REQUEST_SECONDS + 1))
            return True

        monkeypatch.setattr(github_wire, "may_connect", stand_still)
        with pytest.raises(TrackerUnavailable) as error:
            await _add(end)
    assert (False, 4) == (error.value.effect_possible, len(peers))
    assert [] == await end.control.requests("POST")


async def test_a_process_that_stood_still_before_the_request_sends_nothing(
    end: GitHubEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a write counts from its beginning, not from that of its last request."""
    with ExitStack() as passing:

        def stand_still(*values: Any) -> Plan:  # noqa: ANN401 - whatever a plan is made of
            passing.enter_context(ahead(WRITE_SECONDS + 1))
            return plan(*values)

        monkeypatch.setattr(github, "plan", stand_still)
        with pytest.raises(TrackerUnavailable, match="too late") as error:
            await _add(end)
    assert not error.value.effect_possible
    assert [] == await end.control.requests("POST")


async def test_writes_keep_a_distance(end: GitHubEnd) -> None:
    """GitHub asks for a second between two writes; too long a queue is told to come back."""
    tracker = github_tracker(end.github, write_spacing_seconds=0.4)
    began = monotonic()
    for label in LABELS:
        await _add(end, label, tracker=tracker)
    assert monotonic() - began >= 0.8
    busy = github_tracker(end.github, write_spacing_seconds=30)
    await _add(end, tracker=busy)
    assert busy.seconds_to_turn("another") is None
    with pytest.raises(TrackerUnavailable) as error:
        await _add(end, tracker=busy)
    assert not error.value.effect_possible
    assert 20 < (error.value.retry_after_seconds or 0) <= 30


async def test_a_turn_that_was_kept_is_the_write_s_own(end: GitHubEnd) -> None:
    """Whoever asks first writes first, asking again changes nothing, and others are after it."""
    tracker = github_tracker(end.github, write_spacing_seconds=3)
    assert 0 == tracker.seconds_to_turn("first")
    assert 0 == tracker.seconds_to_turn("first")
    second = tracker.seconds_to_turn("second")
    assert second is not None
    assert 2 < second <= 3
    assert tracker.seconds_to_turn("third") is None
