"""Writes whose run is over are settled by reading, and those of live runs are left alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from temporalio.client import Client, WorkflowFailureError

from activities.label_answers import OWNER
from activities.services import Services
from activities.sweeper import (
    ABSENT,
    BEGUN,
    PURGE_LIMIT,
    RUN_OVER,
    UNREADABLE,
    Outcome,
    Sweeper,
    Swept,
    sweeping,
)
from tests.activities.leftovers import (
    A_MOMENT,
    ISSUE,
    LEASE,
    QUIET,
    REPOSITORY,
    Leftovers,
    approval_row,
    opened,
    operation_row,
)
from tests.clock import PATIENCE_SECONDS
from tests.workflow.world import dev_server
from triage.storage.audit_ledger import Difference
from triage.storage.audit_verify import verify
from triage.storage.documents import DocumentKind, Unavailable
from triage.storage.errors import StorageUnavailable
from triage.storage.operations import InDoubt, Reserved, Settled
from triage.storage.transitions import OperationState as S
from triage.trackers.base import TrackerTimeout

OPEN = [S.RESERVED, S.DISPATCHED, S.UNKNOWN, S.RECONCILED_ABSENT]
IN_DOUBT = [S.DISPATCHED, S.UNKNOWN, S.RECONCILED_ABSENT]
LONG = LEASE + QUIET


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[Client]:
    """A client of a server that no worker polls."""
    async with await dev_server() as env:
        yield env.client


@pytest.fixture
async def left(server: Client, services: Services) -> AsyncIterator[Leftovers]:
    """Runs, rows and a far end; whatever a test did, the audit chain holds."""
    leftovers = await opened(server, services)
    yield leftovers
    assert [] == await verify(services.store)


async def test_a_reserved_write_of_a_terminated_run_is_given_up(left: Leftovers) -> None:
    """No effect was possible, so it is cancelled as soon as its lease is over."""
    key = await left.row(await left.terminated(), S.RESERVED)
    left.pass_time(LEASE + A_MOMENT)
    assert (Outcome.CANCELLED, S.CANCELLED) == await left.swept(key)
    assert RUN_OVER == (await left.record(key)).reason
    assert {} == (await left.sweep()).outcomes


@pytest.mark.parametrize("state", IN_DOUBT)
async def test_a_write_that_happened_is_found(left: Leftovers, state: S) -> None:
    """The labels of a terminated run's write are on the issue: it is settled with a receipt."""
    key = await left.row(await left.terminated(), state)
    await left.commit(key)
    left.pass_time(LEASE + A_MOMENT)
    assert (Outcome.APPLIED, S.RECONCILED_APPLIED) == await left.swept(key)
    record = await left.record(key)
    receipt = json.loads(record.receipt or b"null")
    assert (key, "readback", ["bug"], "maintainer") == (
        receipt["operation_key"],
        receipt["how"],
        receipt["after"],
        receipt["approval"]["approver"],
    )
    assert (None, {}) == (record.attention_at, (await left.sweep()).outcomes)


async def test_a_label_that_a_person_removed_stays_off(left: Leftovers) -> None:
    """A write whose label was taken off since did happen, and is settled as such."""
    key = await left.row(await left.terminated(), S.UNKNOWN)
    await left.commit(key)
    await left.tracker.remove_label(REPOSITORY, ISSUE, "bug", by="ann")
    assert (Outcome.APPLIED, S.RECONCILED_APPLIED) == await left.swept(key)
    assert b"removed_by_person" in ((await left.record(key)).receipt or b"")
    assert ["bug"] == await left.written()


@pytest.mark.parametrize("state", IN_DOUBT)
async def test_an_absent_write_is_told_to_a_person_and_never_sent(
    left: Leftovers, state: S
) -> None:
    """Absent after the quiet period ends as that, with a reason and an owner; nothing is sent."""
    key = await left.row(await left.terminated(), state)
    left.pass_time(LONG)
    assert (Outcome.ABSENT, S.RECONCILED_ABSENT) == await left.swept(key)
    record = await left.record(key)
    assert (ABSENT, OWNER) == (record.reason, record.attention_owner)
    assert (record,) == await left.services.ledger.list(attention_only=True)
    assert ({}, []) == ((await left.sweep()).outcomes, await left.written())


async def test_absence_proves_nothing_before_the_quiet_period_is_over(left: Leftovers) -> None:
    """A late commit is waited for, and found by a later pass."""
    key = await left.row(await left.terminated(), S.DISPATCHED)
    left.pass_time(LEASE + A_MOMENT)
    assert (Outcome.WAITS, S.UNKNOWN) == await left.swept(key)
    await left.commit(key)
    assert (Outcome.APPLIED, S.RECONCILED_APPLIED) == await left.swept(key)


@pytest.mark.parametrize("state", [S.RESERVED, S.DISPATCHED])
async def test_an_attempt_that_may_still_act_is_left_alone(left: Leftovers, state: S) -> None:
    """As long as the lease holds, the row belongs to the attempt, whatever became of its run."""
    key = await left.row(await left.terminated(), state)
    left.pass_time(LEASE - A_MOMENT)
    assert (None, state) == await left.swept(key)


@pytest.mark.parametrize("state", OPEN)
async def test_a_write_of_a_live_run_is_left_alone(left: Leftovers, state: S) -> None:
    """A run that lives settles its writes itself, however long it takes."""
    run = await left.run()
    key = await left.row(run, state)
    left.pass_time(LONG)
    before = await left.record(key)
    assert Outcome.LIVES is (await left.swept(key))[0]
    assert before == await left.record(key)
    await run.terminate()


async def test_a_later_run_of_the_same_name_is_another_run(left: Leftovers) -> None:
    """A write is settled when its own run is over, even while another one has that workflow id."""
    first = await left.terminated()
    old = await left.row(first, S.UNKNOWN)
    await left.commit(old)
    second = await left.run(first.id)
    new = await left.row(second, S.UNKNOWN, "documentation")
    expected = {old: Outcome.APPLIED, new: Outcome.LIVES}
    assert expected == (await left.sweep()).outcomes
    await second.terminate()


async def test_a_run_that_timed_out_is_over(left: Leftovers) -> None:
    """An execution that the server ended is over like a terminated one."""
    run = await left.run(execution_timeout=timedelta(milliseconds=100))
    key = await left.row(run, S.UNKNOWN)
    await left.commit(key)
    with pytest.raises(WorkflowFailureError):
        await run.result()
    assert (Outcome.APPLIED, S.RECONCILED_APPLIED) == await left.swept(key)


async def test_a_run_that_is_gone_is_over(left: Leftovers) -> None:
    """What the namespace's retention has removed cannot come back."""
    run = left.client.get_workflow_handle("no-such-run", first_execution_run_id="x")
    key = await left.row(run, S.RESERVED)
    left.pass_time(LEASE + A_MOMENT)
    assert (Outcome.CANCELLED, S.CANCELLED) == await left.swept(key)


async def test_an_issue_that_cannot_be_read_ends_with_a_person(left: Leftovers) -> None:
    """An issue that is gone says nothing; after the quiet period somebody has to look."""
    missing = operation_row(await left.terminated())
    missing = replace(missing, target=missing.target.replace('"issue":"1"', '"issue":"9"'))
    answer = await left.services.ledger.reserve(missing, approval_row(missing))
    assert isinstance(answer, Reserved)
    assert await left.services.ledger.dispatch(missing.operation_key, answer.epoch)
    left.pass_time(LEASE + A_MOMENT)
    assert (Outcome.WAITS, S.UNKNOWN) == await left.swept(missing.operation_key)
    left.pass_time(QUIET)
    assert (Outcome.UNREADABLE, S.ATTENTION) == await left.swept(missing.operation_key)
    record = await left.record(missing.operation_key)
    assert (UNREADABLE, OWNER) == (record.reason, record.attention_owner)


async def test_a_silent_tracker_is_asked_again_before_a_person_is(
    left: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading without an answer proves nothing; after twice the quiet period, that is enough."""
    key = await left.row(await left.terminated(), S.UNKNOWN)

    async def silent(*_: object) -> None:
        raise TrackerTimeout("no answer")

    monkeypatch.setattr(left.tracker, "get_issue", silent)
    left.pass_time(QUIET + A_MOMENT)
    assert (Outcome.WAITS, S.UNKNOWN) == await left.swept(key)
    left.pass_time(QUIET)
    assert (Outcome.UNREADABLE, S.ATTENTION) == await left.swept(key)


async def test_one_write_that_makes_trouble_does_not_stop_the_others(left: Leftovers) -> None:
    """A tracker that this worker does not have keeps one row open, and no other."""
    run = await left.terminated()
    strange = operation_row(run, tracker="elsewhere")
    answer = await left.services.ledger.reserve(strange, approval_row(strange))
    assert isinstance(answer, Reserved)
    assert await left.services.ledger.dispatch(strange.operation_key, answer.epoch)
    key = await left.row(run, S.RESERVED, "documentation")
    left.pass_time(LONG)
    expected = {strange.operation_key: Outcome.BROKEN, key: Outcome.CANCELLED}
    assert expected == (await left.sweep()).outcomes


async def test_a_row_that_cannot_be_read_does_not_stop_the_others(left: Leftovers) -> None:
    """It is left as it is, and the pass goes on to the next one."""
    run = await left.terminated()
    edited = await left.row(run, S.RESERVED)
    key = await left.row(run, S.RESERVED, "documentation")
    target = (await left.record(edited)).target
    spoil = text("UPDATE operations SET target = :target WHERE operation_key = :key")
    async with left.services.store.write() as connection:
        await connection.execute(spoil, {"key": edited, "target": "no"})
    left.pass_time(LONG)
    assert {edited: Outcome.EDITED, key: Outcome.CANCELLED} == (await left.sweep()).outcomes
    [found] = await verify(left.services.store)
    assert Difference.CONTENT is found.code
    async with left.services.store.write() as connection:
        await connection.execute(spoil, {"key": edited, "target": target})


async def test_without_an_answer_about_the_run_nothing_is_settled(left: Leftovers) -> None:
    """A server that does not answer is no proof that a run is over."""
    key = await left.row(await left.terminated(), S.UNKNOWN)
    left.pass_time(LONG)
    silent = await Client.connect("127.0.0.1:1", lazy=True)
    swept = await Sweeper(silent, left.services).sweep()
    assert ({key: Outcome.BROKEN}, S.UNKNOWN) == (swept.outcomes, (await left.record(key)).state)


async def test_whoever_took_over_meanwhile_has_won(left: Leftovers) -> None:
    """A claim that came after the pass had looked keeps its write: the epoch is another one."""
    run = await left.terminated()
    key = await left.row(run, S.RESERVED)
    left.pass_time(LEASE + A_MOMENT)
    seen = await left.record(key)
    row = operation_row(run)
    claimed = await left.services.ledger.reserve(row, approval_row(row), owner="another")
    assert isinstance(claimed, Reserved)
    assert Outcome.LOST is await Sweeper(left.client, left.services)._outcome(seen)
    assert (S.RESERVED, "another") == (
        (await left.record(key)).state,
        (await left.record(key)).owner,
    )


async def test_the_reading_of_a_pass_allows_no_sending(left: Leftovers) -> None:
    """A run that was reset has to read for itself before an absent write is sent again."""
    run = await left.terminated()
    key = await left.row(run, S.UNKNOWN)
    left.pass_time(LONG)
    assert Outcome.ABSENT is (await left.swept(key))[0]
    ledger, row = left.services.ledger, operation_row(run)
    doubt = await ledger.reserve(row, approval_row(row))
    assert isinstance(doubt, InDoubt)
    assert await ledger.reconcile(key, doubt.epoch, present=False)
    assert isinstance(await ledger.reserve(row, approval_row(row)), Reserved)
    assert None is (await left.record(key)).attention_at


async def _taken_over(left: Leftovers, issue: str = ISSUE) -> str:
    """Return a write that was sent in vain, and claimed anew by an attempt that died."""
    ledger, row = left.services.ledger, operation_row(await left.terminated())
    target = row.target.replace(f'"issue":"{ISSUE}"', f'"issue":"{issue}"')
    row = replace(row, target=target)
    first = await ledger.reserve(row, approval_row(row))
    assert isinstance(first, Reserved)
    assert await ledger.dispatch(row.operation_key, first.epoch)
    assert await ledger.mark_unknown(row.operation_key, first.epoch)
    left.pass_time(QUIET + A_MOMENT)
    assert await ledger.reconcile(row.operation_key, first.epoch, present=False)
    assert isinstance(await ledger.reserve(row, approval_row(row)), Reserved)
    left.pass_time(LEASE + A_MOMENT)
    return row.operation_key


async def test_a_write_that_was_sent_before_is_given_up_if_nothing_shows(left: Leftovers) -> None:
    """The attempt that claimed it anew has not sent it, and of the earlier one nothing is left."""
    key = await _taken_over(left)
    assert (Outcome.CANCELLED, S.CANCELLED) == await left.swept(key)


async def test_a_write_that_was_sent_before_and_shows_needs_a_person(left: Leftovers) -> None:
    """What an earlier attempt may have done is never said not to have happened."""
    key = await _taken_over(left)
    await left.commit(key)
    assert (Outcome.BEGUN, S.ATTENTION) == await left.swept(key)
    record = await left.record(key)
    assert (BEGUN, OWNER) == (record.reason, record.attention_owner)
    assert {} == (await left.sweep()).outcomes


async def test_a_write_that_was_sent_before_and_cannot_be_read_needs_a_person(
    left: Leftovers,
) -> None:
    """An issue that is gone shows nothing, and proves nothing."""
    key = await _taken_over(left, issue="9")
    assert (Outcome.BEGUN, S.ATTENTION) == await left.swept(key)


async def test_many_writes_are_looked_through(
    left: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass reads the ledger page by page, to its end."""
    monkeypatch.setattr("activities.sweeper._PAGE", 2)
    keys = {await left.row(await left.terminated(), S.RESERVED) for _ in range(5)}
    left.pass_time(LEASE + A_MOMENT)
    assert dict.fromkeys(keys, Outcome.CANCELLED) == (await left.sweep()).outcomes


async def test_writes_that_were_settled_long_ago_leave_their_digests(left: Leftovers) -> None:
    """Past the ledger's retention a settled write goes, some a pass, audited, and never returns."""
    run, writes = await left.run(), PURGE_LIMIT + 1
    rows = [operation_row(run, f"label {n}") for n in range(writes)]
    for row in rows:
        answer = await left.services.ledger.reserve(row, approval_row(row))
        assert isinstance(answer, Reserved)
        assert await left.services.ledger.cancel(row.operation_key, answer.epoch)
    left.pass_time(left.services.ledger_retention - timedelta(hours=1))
    assert Swept() == await left.sweep()
    left.pass_time(timedelta(hours=2))
    passes = [(await left.sweep()).purged for _ in range(3)]
    assert [PURGE_LIMIT, 1, 0] == passes
    assert () == await left.services.ledger.list()
    again = await left.services.ledger.reserve(rows[0], approval_row(rows[0]))
    assert Settled(state=S.CANCELLED, receipt=None, receipt_digest=None, purged=True) == again


async def test_expired_content_is_removed(left: Leftovers) -> None:
    """A pass removes what is kept no longer, and leaves the rest."""
    documents, past = left.services.documents, datetime(2020, 1, 1, tzinfo=UTC)
    gone = await documents.put("scope", DocumentKind.REQUEST, b"old", expires_at=past)
    kept = await documents.put("scope", DocumentKind.REQUEST, b"new")
    assert Swept(documents=1) == await left.sweep()
    answer = await documents.get("scope", DocumentKind.REQUEST, gone)
    assert Unavailable(digest=gone, reason="purged") == answer
    assert await documents.get("scope", DocumentKind.REQUEST, kept)


async def test_passes_go_on_after_one_that_broke_off(left: Leftovers) -> None:
    """A fault of the store ends a pass and not the sweeper; leaving the body ends both."""
    passes = asyncio.Queue[int]()

    class Counting(Sweeper):
        async def sweep(self) -> Swept:
            passes.put_nowait(1)
            raise StorageUnavailable("not now")

    sweeper = Counting(left.client, left.services)
    async with sweeping(sweeper, period_seconds=0.001), asyncio.timeout(PATIENCE_SECONDS):
        await passes.get()
        await passes.get()
    seen = passes.qsize()
    await asyncio.sleep(0.01)
    assert seen == passes.qsize()
