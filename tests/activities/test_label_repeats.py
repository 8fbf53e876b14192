"""The same write again: repeated, raced, overtaken, stopped in the middle or long forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.exceptions import ApplicationError

from tests.activities.scripted_tracker import Add, ScriptedTracker
from tests.activities.writing import Writing
from tests.workflow.gate import Gate
from triage.contracts.payloads import WriteOutcome
from triage.storage.approvals import Approvals
from triage.storage.audit_verify import verify
from triage.storage.retention import purge_settled
from triage.storage.transitions import OperationState as S

LEASE = timedelta(seconds=61)


async def test_a_repeat_answers_the_first_receipt_byte_for_byte(writing: Writing) -> None:
    """The same operation, approved again at a later version, is answered and not executed."""
    request = writing.request()
    first = await writing.carry(request)
    before = (await writing.check(request)).receipt
    repeat = writing.request(version=6, scope=request.scope)
    second = await writing.carry(repeat)
    assert (WriteOutcome.APPLIED, True, first.evidence) == (
        second.outcome,
        second.replayed,
        second.evidence,
    )
    assert before == (await writing.check(request)).receipt
    assert 1 == writing.tracker.calls
    rows = await writing.services.evidence.load(request.scope, 100)
    assert [(3, before), (6, before)] == [(row.version, row.content) for row in rows]


async def test_the_same_id_in_another_scope_is_another_write(writing: Writing) -> None:
    """An operation id is a name inside one run: another run's is not replayed."""
    first, second = writing.request(), writing.request()
    await writing.carry(first)
    assert not (await writing.carry(second)).replayed
    assert 2 == writing.tracker.calls


@pytest.mark.parametrize("labels", [("component:api",), ("bug", "component:api"), ("BUG",)])
async def test_the_same_id_with_other_labels_is_a_conflict(
    writing: Writing, labels: tuple[str, ...]
) -> None:
    """An id that stands for one write is never executed for another, approved or not."""
    request = writing.request()
    await writing.carry(request)
    other = writing.request(*labels, version=6, scope=request.scope)
    result = await writing.carry(other)
    assert (WriteOutcome.CONFLICT, None) == (result.outcome, result.evidence)
    assert ({"bug"}, 1) == (writing.tracker.labels, writing.tracker.calls)


def _edited(tracker: ScriptedTracker) -> None:
    tracker.title = "Another title"


def _gone(tracker: ScriptedTracker) -> None:
    tracker.exists = False


def _removed(tracker: ScriptedTracker) -> None:
    tracker.person_removes("bug")


def _limited_for_good(tracker: ScriptedTracker) -> None:
    tracker.will(*[Add.NOT_NOW] * 5)


def _locked(tracker: ScriptedTracker) -> None:
    tracker.will(Add.LOCKED)


@pytest.mark.parametrize("happens", [_edited, _gone, _removed, _limited_for_good, _locked])
async def test_a_write_that_came_to_nothing_says_so_alike_when_asked_again(
    writing: Writing, happens: Callable[[ScriptedTracker], None]
) -> None:
    """A worker that is lost right after giving a write up changes nothing of how its run ends."""
    request = writing.request()
    happens(writing.tracker)
    first = await writing.carry(request)
    again = await writing.carry(request)
    assert WriteOutcome.APPLIED is not first.outcome
    assert (first.outcome, first.detail) == (again.outcome, again.detail)
    assert [] == writing.tracker.commits


async def test_a_stale_version_is_not_executed(writing: Writing) -> None:
    """A write that was given up at a later version is not carried out by an earlier one."""
    request = writing.request(version=6)
    writing.tracker.exists = False
    await writing.carry(request)
    writing.tracker.exists = True
    stale = await writing.carry(writing.request(version=3, scope=request.scope))
    assert WriteOutcome.APPLIED is not stale.outcome
    assert 0 == writing.tracker.calls


async def test_a_write_that_was_given_up_may_be_approved_anew(writing: Writing) -> None:
    """A write cancelled because the issue changed can be approved again at a newer version."""
    request = writing.request()
    writing.tracker.title = "Another title"
    assert WriteOutcome.CONFLICT is (await writing.carry(request)).outcome
    again = writing.request(version=6, scope=request.scope)
    assert WriteOutcome.APPLIED is (await writing.carry(again)).outcome
    assert 1 == writing.tracker.calls


async def test_attempts_at_once_send_once(writing: Writing) -> None:
    """Of attempts that run side by side one sends, and the others wait for what it finds."""
    writing.tracker.gate = Gate()
    request = writing.request()
    request = request.model_copy(update={"timeout_ms": 60_000})
    attempts = [asyncio.create_task(writing.attempt(request)) for _ in range(5)]
    await writing.tracker.gate.entered()
    pending = set(attempts)
    async with asyncio.timeout(60):
        while len(pending) > 1:
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    writing.tracker.gate.open()
    results = await asyncio.gather(*attempts, return_exceptions=True)
    applied = [r for r in results if not isinstance(r, BaseException)]
    waiting = [r for r in results if isinstance(r, ApplicationError)]
    assert (1, 4) == (len(applied), len(waiting))
    assert {"try_later"} == {error.type for error in waiting}
    assert (await writing.carry(request)).outcome is WriteOutcome.APPLIED
    assert 1 == writing.tracker.calls
    await writing.check(request)


async def test_a_frozen_attempt_that_wakes_up_late_sends_nothing(writing: Writing) -> None:
    """An attempt that froze before it sent, beyond its lease, finds that it was overtaken."""
    writing.tracker.read_gate = Gate()
    request = writing.request().model_copy(update={"timeout_ms": 60_000})
    frozen = asyncio.create_task(writing.attempt(request))
    await writing.tracker.read_gate.entered()
    writing.pass_time(LEASE)
    gate, writing.tracker.read_gate = writing.tracker.read_gate, None
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    gate.open()
    with pytest.raises(ApplicationError) as caught:
        await frozen
    assert "try_later" == caught.value.type
    assert 1 == writing.tracker.calls
    assert (2, S.APPLIED) == (
        (await writing.check(request)).epoch,
        (await writing.check(request)).state,
    )


async def test_a_frozen_call_that_still_lands_is_the_only_one(writing: Writing) -> None:
    """While a sent call may still land nobody sends again; when it lands, that is the outcome."""
    writing.tracker.gate = Gate()
    request = writing.request().model_copy(update={"timeout_ms": 600_000})
    frozen = asyncio.create_task(writing.attempt(request))
    await writing.tracker.gate.entered()
    writing.pass_time(LEASE)
    with pytest.raises(ApplicationError):
        await writing.attempt(request)
    assert S.UNKNOWN is (await writing.record(request)).state
    writing.tracker.gate.open()
    assert WriteOutcome.APPLIED is (await frozen).outcome
    assert (await writing.carry(request)).replayed
    assert 1 == writing.tracker.calls
    assert S.RECONCILED_APPLIED is (await writing.check(request)).state


async def test_an_attempt_that_was_killed_after_it_claimed_is_taken_over(writing: Writing) -> None:
    """A claim without an owner holds until its lease ends; then the next attempt goes on."""
    writing.tracker.read_gate = Gate()
    request = writing.request().model_copy(update={"timeout_ms": 60_000})
    killed = asyncio.create_task(writing.attempt(request))
    await writing.tracker.read_gate.entered()
    killed.cancel()
    await asyncio.gather(killed, return_exceptions=True)
    writing.tracker.read_gate = None
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    assert timedelta(seconds=50) < writing.waited < timedelta(seconds=70)
    assert 2 == (await writing.check(request)).epoch


async def test_an_approval_is_used_once_and_before_the_call(writing: Writing) -> None:
    """The approval is consumed by exactly this operation, and stays consumed."""
    request = writing.request()
    await writing.carry(request)
    record = await writing.check(request)
    approval = await Approvals(writing.store).get(record.operation_key, 3)
    assert approval is not None
    assert (record.operation_key, "maintainer") == (approval.consumed_by, approval.approver)
    assert approval.consumed_at is not None
    assert record.dispatched_at is not None
    assert approval.consumed_at <= record.dispatched_at


async def test_an_approval_that_expired_allows_nothing(writing: Writing) -> None:
    """An approval that is over when the write begins refuses it, and nothing is left behind."""
    request = writing.request(expires_in=timedelta(seconds=30))
    writing.pass_time(timedelta(seconds=31))
    result = await writing.carry(request)
    assert (WriteOutcome.REFUSED, 0) == (result.outcome, writing.tracker.calls)
    assert () == await writing.services.ledger.list()


async def test_an_approval_that_expires_in_the_quiet_period_ends_with_a_person(
    writing: Writing,
) -> None:
    """An absent write is not sent again without an approval, and somebody is told of it."""
    writing.tracker.will(Add.CUT_BEFORE)
    request = writing.request(expires_in=timedelta(seconds=60))
    result = await writing.carry(request)
    assert (WriteOutcome.REFUSED, 1) == (result.outcome, writing.tracker.calls)
    assert S.ATTENTION is (await writing.check(request)).state


async def test_a_claim_whose_approval_expired_is_given_up(writing: Writing) -> None:
    """A killed attempt whose approval ran out meanwhile leaves no write that looks alive."""
    writing.tracker.read_gate = Gate()
    request = writing.request(expires_in=timedelta(seconds=30))
    request = request.model_copy(update={"timeout_ms": 60_000})
    killed = asyncio.create_task(writing.attempt(request))
    await writing.tracker.read_gate.entered()
    killed.cancel()
    await asyncio.gather(killed, return_exceptions=True)
    writing.tracker.read_gate = None
    assert WriteOutcome.REFUSED is (await writing.carry(request)).outcome
    assert (S.CANCELLED, 0) == ((await writing.check(request)).state, writing.tracker.calls)


async def test_a_repeat_after_the_ledger_was_cleared_is_still_a_repeat(writing: Writing) -> None:
    """Of an old write only digests are left, and they answer: applied, not executed again."""
    request = writing.request()
    first = await writing.carry(request)
    assert 1 == await purge_settled(writing.store, datetime.now(UTC) + timedelta(days=1))
    repeat = await writing.carry(writing.request(version=6, scope=request.scope))
    assert first.evidence is not None
    assert repeat.evidence is not None
    assert (WriteOutcome.APPLIED, True, first.evidence.digest, "mutation-receipt") == (
        repeat.outcome,
        repeat.replayed,
        repeat.evidence.digest,
        repeat.evidence.id,
    )
    other = await writing.carry(writing.request("component:api", version=9, scope=request.scope))
    assert WriteOutcome.CONFLICT is other.outcome
    assert 1 == writing.tracker.calls


async def test_the_audit_chain_holds_after_all_of_it(writing: Writing) -> None:
    """However a write went, its moves are audited in an unbroken chain."""
    writing.tracker.will(Add.CUT_BEFORE, Add.NOT_NOW, Add.CUT_AFTER)
    request = writing.request()
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    await writing.check(request)
    assert [] == await verify(writing.store)
