"""A write that was half done is never said to have done nothing, whatever stops it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import pytest
from temporalio.exceptions import ApplicationError

from activities.label_answers import OWNER
from activities.label_rows import approval_row, operation_row
from activities.label_write import LEFT_BEHIND, WRITES_STOPPED
from tests.activities.scripted_tracker import Add
from tests.activities.writing import Writing
from triage.contracts.payloads import WriteOutcome, WriteRequest
from triage.storage.operations import Reserved
from triage.storage.switches import Switches
from triage.storage.transitions import OperationState as S

LABELS: Final = ("bug", "component:api")
Happening = Callable[[Writing], Awaitable[None]]


async def _writes_stop(writing: Writing) -> None:
    await Switches(writing.store).stop("ann", "wrong labels")


async def _person_removes(writing: Writing) -> None:
    writing.tracker.person_removes("bug")


async def _issue_changes(writing: Writing) -> None:
    writing.tracker.title = "Another title"


async def _label_goes(writing: Writing) -> None:
    writing.tracker.inventory = ("bug",)


async def _issue_goes(writing: Writing) -> None:
    writing.tracker.exists = False


async def _issue_is_locked(writing: Writing) -> None:
    writing.tracker.will(Add.LOCKED)


async def _request_is_invalid(writing: Writing) -> None:
    writing.tracker.will(Add.INVALID)


async def _tracker_stays_busy(writing: Writing) -> None:
    writing.tracker.will(*[Add.NOT_NOW] * 9)


HAPPENINGS: Final[dict[str, Happening]] = {
    "writes are stopped": _writes_stop,
    "a person removes its label": _person_removes,
    "the issue changes": _issue_changes,
    "its other label is dropped": _label_goes,
    "the issue goes": _issue_goes,
    "the issue is locked": _issue_is_locked,
    "the request is refused": _request_is_invalid,
    "the tracker stays busy": _tracker_stays_busy,
}


async def _absent(writing: Writing, request: WriteRequest, fault: Add) -> None:
    """Let a write be sent once, and bring it to where it may be sent again."""
    writing.tracker.will(fault)
    for _ in range(20):
        with pytest.raises(ApplicationError) as caught:
            await writing.attempt(request)
        if (await writing.record(request)).state is S.RECONCILED_ABSENT:
            return
        writing.pass_time(caught.value.next_retry_delay or timedelta())
    raise AssertionError("it was never read back as absent")


@pytest.mark.parametrize("happening", HAPPENINGS)
async def test_what_is_half_done_and_cannot_go_on_needs_a_person(
    writing: Writing, happening: str
) -> None:
    """Its first label is on, so it is neither cancelled nor failed, but listed, with a reason."""
    request = writing.request(*LABELS)
    await _absent(writing, request, Add.PARTLY_CUT)
    await HAPPENINGS[happening](writing)
    assert WriteOutcome.UNKNOWN is (await writing.carry(request)).outcome
    record = await writing.check(request)
    assert (S.ATTENTION, OWNER) == (record.state, record.attention_owner)
    assert [("bug",)] == [commit.labels for commit in writing.tracker.commits]


async def test_the_reason_says_what_keeps_it_and_that_a_part_is_done(writing: Writing) -> None:
    """Whoever is asked reads why it does not go on, and that something is there."""
    request = writing.request(*LABELS)
    await _absent(writing, request, Add.PARTLY_CUT)
    await _writes_stop(writing)
    await writing.carry(request)
    assert f"{WRITES_STOPPED}, {LEFT_BEHIND}" == (await writing.record(request)).reason


async def test_a_repeat_of_what_was_left_half_done_sends_nothing(writing: Writing) -> None:
    """A newer version of the run does not carry on what a person has to look at."""
    request = writing.request(*LABELS)
    await _absent(writing, request, Add.PARTLY_CUT)
    await _writes_stop(writing)
    await writing.carry(request)
    await Switches(writing.store).allow("ann")
    again = writing.request(*LABELS, scope=request.scope, version=6)
    assert WriteOutcome.UNKNOWN is (await writing.carry(again)).outcome
    assert 1 == writing.tracker.calls


@pytest.mark.parametrize(
    "happening", ["writes are stopped", "the issue changes", "the issue is locked"]
)
async def test_what_left_nothing_is_given_up_as_ever(writing: Writing, happening: str) -> None:
    """A write that was sent, and of which nothing shows after the quiet period, did nothing."""
    request = writing.request(*LABELS)
    await _absent(writing, request, Add.CUT_BEFORE)
    await HAPPENINGS[happening](writing)
    await writing.carry(request)
    assert (await writing.check(request)).state in {S.CANCELLED, S.FAILED}


async def test_the_half_that_is_left_is_not_sent_once_its_lease_ran_out(writing: Writing) -> None:
    """A claim that died is taken over with an approval that holds no more: a person is asked."""
    request = writing.request(*LABELS, expires_in=timedelta(seconds=150))
    await _absent(writing, request, Add.PARTLY_CUT)
    row = operation_row(request, "triage-1")
    held = await writing.services.ledger.reserve(row, approval_row(request), owner="killed since")
    assert isinstance(held, Reserved)
    writing.pass_time(timedelta(seconds=61))
    assert WriteOutcome.REFUSED is (await writing.carry(request)).outcome
    assert (S.ATTENTION, 1) == ((await writing.check(request)).state, writing.tracker.calls)
