"""One answer that is missing is no reason to call a person; a tracker that stays silent is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.activities.scripted_tracker import Add, Read
from tests.activities.writing import Writing
from triage.contracts.payloads import WriteOutcome
from triage.storage.transitions import OperationState as S

QUIET = timedelta(seconds=120)
MARGIN = timedelta(seconds=35)
"""Some more than the longest pause between two readings."""


@pytest.mark.parametrize("fault", [Read.CUT, Read.ERROR])
async def test_a_reading_that_fails_after_the_quiet_period_is_tried_again(
    writing: Writing, fault: Read
) -> None:
    """The write is found absent by the next reading, sent again, and nobody is called."""
    writing.tracker.will(Add.CUT_BEFORE)
    request, failed = writing.request(), False

    def fail(_: timedelta) -> None:
        nonlocal failed
        if writing.waited >= QUIET and not failed:
            failed = True
            writing.tracker.will(fault)

    assert WriteOutcome.APPLIED is (await writing.carry(request, fail)).outcome
    assert failed
    assert (None, 2) == ((await writing.check(request)).attention_at, writing.tracker.calls)


@pytest.mark.parametrize("fault", [Read.CUT, Read.ERROR])
async def test_a_tracker_that_stays_silent_is_left_to_a_person(
    writing: Writing, fault: Read
) -> None:
    """After twice the quiet period somebody has to look, and soon after that."""
    writing.tracker.will(Add.CUT_AFTER)
    request = writing.request()

    def fail(_: timedelta) -> None:
        writing.tracker.will(fault)

    assert WriteOutcome.UNKNOWN is (await writing.carry(request, fail)).outcome
    assert S.ATTENTION is (await writing.check(request)).state
    assert 2 * QUIET <= writing.waited < 2 * QUIET + MARGIN


async def test_an_issue_that_is_gone_is_left_to_a_person_at_once(writing: Writing) -> None:
    """Asking again would not help: after the quiet period somebody has to look."""
    writing.tracker.will(Add.CUT_AFTER)
    request = writing.request()

    def go(_: timedelta) -> None:
        writing.tracker.exists = False

    assert WriteOutcome.UNKNOWN is (await writing.carry(request, go)).outcome
    assert S.ATTENTION is (await writing.check(request)).state
    assert QUIET <= writing.waited < QUIET + MARGIN


async def test_a_write_whose_turn_is_far_away_is_not_begun(writing: Writing) -> None:
    """However long others are before it, waiting uses up none of what it may be sent."""
    request, waits = writing.request(), iter([None] * 12)
    tracker = writing.tracker
    vars(tracker)["seconds_to_turn"] = lambda _key: next(waits, 0.0)
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    assert 12 < writing.attempts
    assert (1, 1) == (tracker.calls, (await writing.check(request)).dispatches)
