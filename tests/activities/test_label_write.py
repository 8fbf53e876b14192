"""The write against a far end that is slow, silent, broken or changed under its hands."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.activities.scripted_tracker import Add, Read
from tests.activities.writing import Writing
from tests.workflow.gate import Gate
from triage.contracts.payloads import WriteOutcome
from triage.storage.transitions import OperationState as S

QUIET = timedelta(seconds=120)


async def test_a_write_is_sent_once_and_seen(writing: Writing) -> None:
    """When all goes well there is one call, one commit, one attempt and a receipt."""
    request = writing.request("bug", "component:api")
    result = await writing.carry(request)
    assert (WriteOutcome.APPLIED, False, 1, 1) == (
        result.outcome,
        result.replayed,
        writing.attempts,
        writing.tracker.calls,
    )
    record = await writing.check(request)
    assert (S.APPLIED, 1) == (record.state, record.dispatches)
    assert record.receipt is not None
    assert b'"how":"applied_by_us"' in record.receipt
    assert result.evidence is not None
    assert record.receipt_digest == result.evidence.digest


async def test_labels_that_are_there_already_need_no_commit(writing: Writing) -> None:
    """A write whose labels a person was faster with succeeds without changing anything."""
    writing.tracker.labels.add("bug")
    request = writing.request()
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    record = await writing.check(request)
    assert record.receipt is not None
    assert b"already_present" in record.receipt
    assert [] == writing.tracker.commits


UNANSWERED = [Add.CUT_BEFORE, Add.ERROR_BEFORE, Add.HANGS]


@pytest.mark.parametrize("fault", UNANSWERED)
async def test_an_absent_write_is_sent_again_only_after_the_quiet_period(
    writing: Writing, fault: Add
) -> None:
    """Absence proves nothing until the quiet period is over; then the write is sent again."""
    if fault is Add.HANGS:
        writing.expect_silence()
    writing.tracker.will(fault)
    request = writing.request()
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    assert QUIET <= writing.waited < timedelta(seconds=125)
    record = await writing.check(request)
    assert (S.APPLIED, 2, 2, 1) == (
        record.state,
        record.dispatches,
        writing.tracker.calls,
        len(writing.tracker.commits),
    )


async def test_a_write_that_takes_longer_than_its_tool_may_still_answers(
    writing: Writing,
) -> None:
    """On a busy machine a call may take what the worker allows: one attempt, and no doubt."""
    writing.tracker.gate = Gate()
    request = writing.request()
    attempt = asyncio.create_task(writing.attempt(request))
    await writing.tracker.gate.entered()
    await asyncio.wait({attempt}, timeout=5 * request.timeout_ms / 1_000)
    writing.tracker.gate.open()
    assert WriteOutcome.APPLIED is (await attempt).outcome
    assert (S.APPLIED, 1) == ((await writing.check(request)).state, writing.tracker.calls)


@pytest.mark.parametrize("fault", [Add.CUT_AFTER, Add.ERROR_AFTER])
async def test_a_write_that_happened_without_an_answer_is_found_by_reading(
    writing: Writing, fault: Add
) -> None:
    """A timeout or server error after the commit is settled by reading, and not repeated."""
    writing.tracker.will(fault)
    request = writing.request()
    result = await writing.carry(request)
    assert (WriteOutcome.APPLIED, False) == (result.outcome, result.replayed)
    record = await writing.check(request)
    assert (S.RECONCILED_APPLIED, 1) == (record.state, writing.tracker.calls)
    assert record.receipt is not None
    assert b'"how":"readback"' in record.receipt
    assert writing.waited < timedelta(seconds=1)


async def test_a_write_that_lands_late_is_found_and_not_repeated(writing: Writing) -> None:
    """What arrives within the quiet period is why absence proves nothing before its end."""
    writing.tracker.will(Add.CUT_AND_LATE)
    request = writing.request()

    def land(pause: timedelta) -> None:
        if pause > timedelta(seconds=10):
            writing.tracker.land()

    result = await writing.carry(request, meanwhile=land)
    assert (WriteOutcome.APPLIED, 1) == (result.outcome, writing.tracker.calls)
    assert S.RECONCILED_APPLIED is (await writing.check(request)).state


async def test_a_definite_no_is_tried_again_after_its_own_pause(writing: Writing) -> None:
    """A tracker that says that it did nothing is asked again as soon as it permits."""
    writing.tracker.will(Add.NOT_NOW)
    request = writing.request()
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    assert timedelta(seconds=30) <= writing.waited < timedelta(seconds=40)
    assert (S.APPLIED, 2) == ((await writing.check(request)).state, writing.tracker.calls)


async def test_a_definite_no_that_stays_fails_the_write(writing: Writing) -> None:
    """After every permitted dispatch was refused the write has failed for good."""
    writing.tracker.will(*[Add.NOT_NOW] * 9)
    request = writing.request()
    assert WriteOutcome.FAILED is (await writing.carry(request)).outcome
    assert (S.FAILED, 3) == ((await writing.check(request)).state, writing.tracker.calls)
    again = await writing.carry(request)
    assert (WriteOutcome.FAILED, True) == (again.outcome, again.replayed)
    assert 3 == writing.tracker.calls


async def test_a_write_that_is_never_answered_ends_with_a_person(writing: Writing) -> None:
    """Absent after every permitted dispatch: the outcome is unknown, and somebody is told."""
    writing.tracker.will(*[Add.CUT_BEFORE] * 9)
    request = writing.request()
    result = await writing.carry(request)
    assert (WriteOutcome.UNKNOWN, None) == (result.outcome, result.evidence)
    record = await writing.check(request)
    assert (S.ATTENTION, "operations", 3) == (
        record.state,
        record.attention_owner,
        writing.tracker.calls,
    )
    assert (record,) == await writing.services.ledger.list(attention_only=True)
    assert WriteOutcome.UNKNOWN is (await writing.carry(request)).outcome
    assert 3 == writing.tracker.calls


async def test_a_tracker_that_refuses_for_good_fails_the_write(writing: Writing) -> None:
    """A locked issue is a definite no: failed, not retried, and nothing was sent twice."""
    writing.tracker.will(Add.LOCKED)
    request = writing.request()
    result = await writing.carry(request)
    assert (WriteOutcome.FAILED, "issue_locked") == (result.outcome, result.detail)
    assert (S.FAILED, 1) == ((await writing.check(request)).state, writing.attempts)


async def test_an_issue_that_is_gone_is_not_written_to(writing: Writing) -> None:
    """An issue that vanished before the write fails it; no call is made."""
    request = writing.request()
    writing.tracker.exists = False
    assert WriteOutcome.FAILED is (await writing.carry(request)).outcome
    assert (S.CANCELLED, 0) == ((await writing.check(request)).state, writing.tracker.calls)


async def test_an_issue_that_vanishes_after_the_call_ends_with_a_person(writing: Writing) -> None:
    """When the outcome can no longer be read the write is unknown, after the quiet period."""
    writing.tracker.will(Add.CUT_BEFORE)
    request = writing.request()

    def vanish(_: timedelta) -> None:
        writing.tracker.exists = False

    assert WriteOutcome.UNKNOWN is (await writing.carry(request, meanwhile=vanish)).outcome
    assert writing.waited >= QUIET
    assert S.ATTENTION is (await writing.check(request)).state


@pytest.mark.parametrize("fault", [Read.CUT, Read.ERROR, Read.HANGS])
async def test_reads_that_fail_before_the_write_only_delay_it(
    writing: Writing, fault: Read
) -> None:
    """As long as the issue cannot be checked nothing is sent; then the write goes through."""
    if fault is Read.HANGS:
        writing.expect_silence()
    writing.tracker.will(fault, fault)
    request = writing.request()
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    assert 1 == (await writing.check(request)).dispatches


@pytest.mark.parametrize("fault", [Read.CUT, Read.ERROR, Read.HANGS])
async def test_success_is_seeing_the_labels(writing: Writing, fault: Read) -> None:
    """A call that succeeded but cannot be observed is settled by a later reading."""
    if fault is Read.HANGS:
        writing.expect_silence()
    writing.tracker.will(Read.OK, fault)
    request = writing.request()
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    assert (S.RECONCILED_APPLIED, 1) == (
        (await writing.check(request)).state,
        writing.tracker.calls,
    )


async def test_a_changed_issue_voids_the_approval(writing: Writing) -> None:
    """An issue whose content changed since it was shown is a conflict, and is not written to."""
    request = writing.request()
    writing.tracker.title = "Another title"
    assert WriteOutcome.CONFLICT is (await writing.carry(request)).outcome
    assert (S.CANCELLED, 0) == ((await writing.check(request)).state, writing.tracker.calls)


async def test_a_missing_label_is_not_created(writing: Writing) -> None:
    """A label outside the tracker's inventory refuses the whole write, by name, before any call."""
    request = writing.request("bug", "component:api")
    writing.tracker.inventory = ("bug",)
    result = await writing.carry(request)
    assert WriteOutcome.REFUSED is result.outcome
    assert 'a label does not exist: "component:api"' == result.detail
    assert (S.CANCELLED, 0) == ((await writing.check(request)).state, writing.tracker.calls)


async def test_a_label_that_a_person_removed_is_not_put_back(writing: Writing) -> None:
    """What a person took off refuses the whole write before any call."""
    writing.tracker.person_removes("bug")
    request = writing.request("bug", "component:api")
    assert WriteOutcome.REFUSED is (await writing.carry(request)).outcome
    assert (S.CANCELLED, 0) == ((await writing.check(request)).state, writing.tracker.calls)


async def test_a_label_removed_while_the_outcome_was_open_stays_off(writing: Writing) -> None:
    """A write whose label a person took off before the reading did happen, and is not redone."""
    writing.tracker.will(Add.CUT_AFTER)
    request = writing.request()

    def remove(_: timedelta) -> None:
        writing.tracker.person_removes("bug")

    assert WriteOutcome.APPLIED is (await writing.carry(request, meanwhile=remove)).outcome
    record = await writing.check(request)
    assert (S.RECONCILED_APPLIED, 1, set()) == (
        record.state,
        writing.tracker.calls,
        writing.tracker.labels,
    )
    assert record.receipt is not None
    assert b"removed_by_person" in record.receipt
