"""The write against a far end that says no, does half of it, or says yes and does nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from activities.label_sending import call_seconds
from tests.activities.scripted_tracker import Add, Read
from tests.activities.writing import Writing
from triage.contracts.payloads import WriteOutcome
from triage.storage.transitions import OperationState as S


async def test_a_write_that_we_may_not_make_is_shown_to_a_person(writing: Writing) -> None:
    """Missing rights fail the write at once, with a reason and somebody who has to look at it."""
    writing.tracker.will(Add.FORBIDDEN)
    request = writing.request()
    result = await writing.carry(request)
    assert (WriteOutcome.FAILED, "forbidden", 1) == (
        result.outcome,
        result.detail,
        writing.attempts,
    )
    record = await writing.check(request)
    assert (S.FAILED, "forbidden", "operations") == (
        record.state,
        record.reason,
        record.attention_owner,
    )
    assert (record,) == await writing.services.ledger.list(attention_only=True)
    assert WriteOutcome.FAILED is (await writing.carry(request)).outcome
    assert 1 == writing.tracker.calls


async def test_an_issue_that_we_may_not_read_is_shown_to_a_person(writing: Writing) -> None:
    """Rights that are missing for the last look do the same, and nothing is sent."""
    writing.tracker.will(Read.FORBIDDEN)
    request = writing.request()
    result = await writing.carry(request)
    assert (WriteOutcome.FAILED, "forbidden", 0) == (
        result.outcome,
        result.detail,
        writing.tracker.calls,
    )
    record = await writing.check(request)
    assert (S.CANCELLED, "operations") == (record.state, record.attention_owner)
    assert (record,) == await writing.services.ledger.list(attention_only=True)


async def test_a_new_approval_takes_a_forbidden_write_off_the_list(writing: Writing) -> None:
    """Once the rights are there and the write is approved anew, it happens and nobody is asked."""
    writing.tracker.will(Read.FORBIDDEN)
    request = writing.request()
    await writing.carry(request)
    again = writing.request(version=6, scope=request.scope)
    assert WriteOutcome.APPLIED is (await writing.carry(again)).outcome
    assert () == await writing.services.ledger.list(attention_only=True)


async def test_an_issue_that_moved_away_ends_the_write(writing: Writing) -> None:
    """An issue that is elsewhere or gone fails the write by that name; nobody need look."""
    writing.tracker.will(Add.MOVED)
    request = writing.request()
    result = await writing.carry(request)
    assert (WriteOutcome.FAILED, "target_gone: issue_transferred", 1) == (
        result.outcome,
        result.detail,
        writing.attempts,
    )
    record = await writing.check(request)
    assert (S.FAILED, None) == (record.state, record.attention_at)


async def test_an_invalid_write_fails_when_nothing_shows(writing: Writing) -> None:
    """A request that was refused as a whole has failed once a reading finds nothing of it."""
    writing.tracker.will(Add.INVALID)
    request = writing.request("bug", "component:api")
    result = await writing.carry(request)
    assert (WriteOutcome.FAILED, "validation_failed") == (result.outcome, result.detail)
    assert (S.FAILED, 1) == ((await writing.check(request)).state, writing.attempts)


async def test_an_invalid_write_that_shows_is_applied(writing: Writing) -> None:
    """What a reading finds counts for more than the refusal, and the receipt says how."""
    writing.tracker.will(Add.INVALID_AFTER)
    request = writing.request("bug", "component:api")
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    record = await writing.check(request)
    assert (S.APPLIED, 1) == (record.state, writing.tracker.calls)
    assert record.receipt is not None
    assert b'"how":"readback"' in record.receipt


async def test_an_invalid_write_of_which_a_part_shows_goes_to_a_person(writing: Writing) -> None:
    """A part that was done is neither failed nor applied, and what was refused is not repeated."""
    writing.tracker.will(Add.PARTLY_INVALID)
    request = writing.request("bug", "component:api")
    assert WriteOutcome.UNKNOWN is (await writing.carry(request)).outcome
    record = await writing.check(request)
    assert (S.ATTENTION, "operations", 1) == (
        record.state,
        record.attention_owner,
        writing.tracker.calls,
    )
    assert "a part of it is done" in (record.reason or "")


@pytest.mark.parametrize("fault", [Read.CUT, Read.ERROR, Read.FORBIDDEN])
async def test_an_invalid_write_that_cannot_be_read_back_stays_open(
    writing: Writing, fault: Read
) -> None:
    """Without a reading a refused request is unknown, not failed; a later one finds what it did."""
    writing.tracker.will(Add.INVALID_AFTER, Read.OK, fault)
    request = writing.request()
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    assert S.RECONCILED_APPLIED is (await writing.check(request)).state
    assert 1 == writing.tracker.calls


async def test_a_success_that_does_not_show_is_read_again_and_again(writing: Writing) -> None:
    """Labels that a success promised are looked for soon and ever later, and never assumed."""
    writing.tracker.will(*[Add.IDLE] * 9)
    request = writing.request()
    pauses: list[float] = []
    result = await writing.carry(request, lambda pause: pauses.append(pause.total_seconds()))
    assert WriteOutcome.UNKNOWN is result.outcome
    assert S.ATTENTION is (await writing.check(request)).state
    assert pauses[:8] == sorted(pauses[:8])
    assert sum(pauses[:5]) < 15
    assert 20 < writing.attempts < 40


async def test_a_success_that_shows_late_is_found_soon(writing: Writing) -> None:
    """A tracker whose readings lag behind by seconds costs seconds, not the quiet period."""
    writing.tracker.will(Add.CUT_AND_LATE)
    request = writing.request()

    def land(_: timedelta) -> None:
        if writing.waited > timedelta(seconds=3):
            writing.tracker.land()

    assert WriteOutcome.APPLIED is (await writing.carry(request, meanwhile=land)).outcome
    assert (S.RECONCILED_APPLIED, 1) == (
        (await writing.check(request)).state,
        writing.tracker.calls,
    )
    assert writing.waited < timedelta(seconds=20)


async def test_of_a_write_that_was_half_done_only_the_rest_is_sent(writing: Writing) -> None:
    """After the quiet period the missing label is asked for, and the other one left alone."""
    writing.tracker.will(Add.PARTLY_CUT)
    request = writing.request("bug", "component:api")
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    assert [("bug", "component:api"), ("component:api",)] == writing.tracker.asked
    assert writing.waited >= timedelta(seconds=120)
    record = await writing.check(request)
    assert (S.APPLIED, {"bug", "component:api"}) == (record.state, writing.tracker.labels)


async def test_the_rest_of_a_write_needs_its_approval_still(writing: Writing) -> None:
    """What is missing of a write is not sent once its approval has run out: a person is told."""
    writing.tracker.will(Add.PARTLY_CUT)
    request = writing.request("bug", "component:api", expires_in=timedelta(seconds=60))
    assert WriteOutcome.REFUSED is (await writing.carry(request)).outcome
    assert (S.ATTENTION, 1) == ((await writing.check(request)).state, writing.tracker.calls)


async def test_a_lookup_of_labels_that_hangs_only_delays_the_write(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every reading before the write is bounded, the labels that exist included."""
    inventory, hung = writing.tracker.label_inventory, list[str]()

    async def hang_once(repository: str) -> tuple[str, ...]:
        if not hung:
            hung.append(repository)
            await asyncio.Event().wait()
        return await inventory(repository)

    monkeypatch.setattr(writing.tracker, "label_inventory", hang_once)
    writing.expect_silence()
    request = writing.request()
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    assert 1 == (await writing.check(request)).dispatches


async def test_a_call_may_take_what_the_worker_allows(writing: Writing) -> None:
    """A write gets the worker's time where that is more than its tool's, within its lease."""
    request = writing.request()
    allowed = {
        seconds: call_seconds(
            replace(writing.services, write_timeout=timedelta(seconds=seconds)), request
        )
        for seconds in (0.02, 15, 300)
    }
    assert {0.02: 0.1, 15: 15, 300: 20} == allowed
