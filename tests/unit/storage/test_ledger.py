"""A write goes through the ledger once, whatever comes again, late or with other content."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from tests.unit.storage.samples import (
    RECEIPT,
    claim,
    counts,
    dispatched,
    operation,
    reserved,
    shift,
)
from triage.contracts.canonical import digest_of_bytes
from triage.storage.engine import Store
from triage.storage.evidence import EvidenceRow, EvidenceStore
from triage.storage.ledger import Ledger
from triage.storage.operations import (
    Busy,
    Conflict,
    ConflictCode,
    InDoubt,
    MoveCode,
    Moved,
    Reserved,
    Settled,
)
from triage.storage.transitions import OperationState

S = OperationState
KEY = "op_1"
SEEN = EvidenceRow(
    scope="scope",
    version=3,
    evidence_id="mutation-receipt",
    tool="apply_labels",
    arguments=b"{}",
    source="ledger",
    locator="ledger@1",
    digest=digest_of_bytes(RECEIPT),
    content=RECEIPT,
    size_bytes=len(RECEIPT),
)


@pytest.fixture
def ledger(store: Store) -> Ledger:
    """A ledger with the timings of production."""
    return Ledger(store)


async def test_a_write_is_done_once(ledger: Ledger) -> None:
    """Reserve, dispatch and settle in order; a repeat gets the receipt, byte for byte."""
    row = operation()
    epoch = await dispatched(ledger, row)
    assert Moved(code=MoveCode.DONE, state=S.APPLIED) == await ledger.settle(
        KEY, epoch, S.APPLIED, RECEIPT, reason="observed"
    )
    again = await claim(ledger, row)
    assert isinstance(again, Settled)
    assert (S.APPLIED, RECEIPT, False) == (again.state, again.receipt, again.purged)


async def test_what_a_write_shows_is_kept_as_it_settles(store: Store, ledger: Ledger) -> None:
    """Evidence is kept where the move is made or was made, and by nobody who may not move it."""
    epoch = await dispatched(ledger, operation())
    kept = EvidenceStore(store)
    settle = partial(ledger.settle, outcome=S.APPLIED, receipt=RECEIPT, evidence=SEEN)
    assert MoveCode.FENCED is (await settle(KEY, epoch + 1)).code
    assert [] == await kept.load(SEEN.scope, before_version=100)
    for _ in range(2):
        assert await settle(KEY, epoch)
        assert [SEEN.content] == [x.content for x in await kept.load(SEEN.scope, 100)]
    other = replace(SEEN, version=4)
    illegal = await settle(KEY, epoch, receipt=b"another", evidence=other)
    assert MoveCode.ILLEGAL is illegal.code
    assert [SEEN.version] == [x.version for x in await kept.load(SEEN.scope, 100)]


@pytest.mark.parametrize("receipt", [b"", bytes(range(256)) * 16], ids=["empty", "any bytes"])
async def test_a_receipt_comes_back_byte_for_byte(ledger: Ledger, receipt: bytes) -> None:
    """A receipt may be any bytes up to 4,096, and stays what it was."""
    epoch = await dispatched(ledger, operation())
    assert await ledger.settle(KEY, epoch, S.APPLIED, receipt)
    answer = await claim(ledger, operation())
    assert isinstance(answer, Settled)
    assert receipt == answer.receipt


async def test_a_receipt_over_the_limit_is_a_callers_mistake(ledger: Ledger) -> None:
    """A receipt of 4,097 bytes is refused before anything is written."""
    epoch = await dispatched(ledger, operation())
    with pytest.raises(ValueError, match="4096"):
        await ledger.settle(KEY, epoch, S.APPLIED, b"x" * 4097)
    with pytest.raises(ValueError, match="settles as"):
        await ledger.settle(KEY, epoch, S.UNKNOWN, RECEIPT)


async def test_other_content_under_a_key_is_a_conflict(ledger: Ledger, store: Store) -> None:
    """The same key with another digest is never executed, before and after it settles."""
    epoch = await dispatched(ledger, operation())
    before = await counts(store)
    other = operation(labels=("security",))
    conflict = ConflictCode.DIGEST_MISMATCH
    assert Conflict(code=conflict, state=S.DISPATCHED) == await claim(ledger, other)
    assert before == await counts(store)
    await ledger.settle(KEY, epoch, S.APPLIED, RECEIPT)
    assert Conflict(code=conflict, state=S.APPLIED) == await claim(ledger, other)


async def test_a_second_attempt_waits_for_the_lease(ledger: Ledger) -> None:
    """While one attempt holds a write, another is told when to come back."""
    await claim(ledger, operation())
    answer = await claim(ledger, operation())
    assert isinstance(answer, Busy)
    assert 0 < answer.retry_after_seconds <= 60


async def test_the_same_attempt_finds_its_claim(ledger: Ledger) -> None:
    """An attempt that does not know whether its claim was committed asks again."""
    first = await claim(ledger, operation(), owner="attempt-1")
    assert first == await claim(ledger, operation(), owner="attempt-1")


async def test_a_takeover_fences_the_first_attempt(ledger: Ledger, store: Store) -> None:
    """After the lease another attempt takes over, and the first can do nothing more."""
    first = reserved(await claim(ledger, operation()))
    await shift(store, "lease_until", timedelta(seconds=-61))
    second = reserved(await claim(ledger, operation()))
    assert (1, 2, True) == (first.epoch, second.epoch, second.taken_over)
    fenced = Moved(code=MoveCode.FENCED, state=S.RESERVED)
    assert fenced == await ledger.dispatch(KEY, 1)
    assert fenced == await ledger.cancel(KEY, 1)
    assert await ledger.dispatch(KEY, 2)
    still = Moved(code=MoveCode.FENCED, state=S.DISPATCHED)
    assert still == await ledger.settle(KEY, 1, S.APPLIED, RECEIPT)
    assert still == await ledger.still_holds(KEY, 1)
    assert await ledger.still_holds(KEY, 2)


async def test_an_attempt_past_its_lease_does_not_dispatch(ledger: Ledger, store: Store) -> None:
    """A frozen attempt that wakes up late may not call the far end, even if nobody took over."""
    await claim(ledger, operation())
    await shift(store, "lease_until", timedelta(seconds=-61))
    late = Moved(code=MoveCode.LEASE_EXPIRED, state=S.RESERVED)
    assert late == await ledger.dispatch(KEY, 1)


async def test_a_dispatch_past_its_lease_no_longer_holds(ledger: Ledger, store: Store) -> None:
    """The last look before the first byte sees that the lease is over."""
    await dispatched(ledger, operation())
    await shift(store, "lease_until", timedelta(seconds=-61))
    late = Moved(code=MoveCode.LEASE_EXPIRED, state=S.DISPATCHED)
    assert late == await ledger.still_holds(KEY, 1)


async def test_nothing_moves_that_does_not_exist(ledger: Ledger) -> None:
    """A key that nobody reserved has no moves."""
    missing = Moved(code=MoveCode.MISSING)
    assert missing == await ledger.dispatch(KEY, 1)
    assert missing == await ledger.still_holds(KEY, 1)
    assert missing == await ledger.attention(KEY, "lost", "operations")
    assert await ledger.get(KEY) is None


async def test_settling_again_with_the_same_words_is_fine(ledger: Ledger, store: Store) -> None:
    """A settle whose commit was cut may be said again; another answer may not be put over it."""
    epoch = await dispatched(ledger, operation())
    assert await ledger.settle(KEY, epoch, S.APPLIED, RECEIPT)
    before = await counts(store)
    assert await ledger.settle(KEY, epoch, S.APPLIED, RECEIPT)
    illegal = Moved(code=MoveCode.ILLEGAL, state=S.APPLIED)
    assert illegal == await ledger.settle(KEY, epoch, S.APPLIED, b"another")
    assert illegal == await ledger.settle(KEY, epoch, S.FAILED, RECEIPT)
    assert illegal == await ledger.mark_unknown(KEY, epoch)
    assert before == await counts(store)


async def test_a_failed_write_stays_failed(ledger: Ledger) -> None:
    """A definite no is answered to every repeat, with its receipt and reason."""
    epoch = await dispatched(ledger, operation())
    await ledger.settle(KEY, epoch, S.FAILED, b"404", reason="target_gone")
    answer = await claim(ledger, operation())
    assert isinstance(answer, Settled)
    assert (S.FAILED, b"404", "target_gone") == (answer.state, answer.receipt, answer.reason)


async def test_a_write_without_an_answer_has_to_be_read_back(ledger: Ledger) -> None:
    """After a timeout a repeat executes nothing; a reading that finds the effect settles it."""
    epoch = await dispatched(ledger, operation())
    assert isinstance(await claim(ledger, operation()), InDoubt)
    assert await ledger.mark_unknown(KEY, epoch, "timeout")
    doubt = await claim(ledger, operation())
    assert isinstance(doubt, InDoubt)
    assert (S.UNKNOWN, epoch, False) == (doubt.state, doubt.epoch, doubt.exhausted)
    assert 0 < doubt.quiet_for_seconds <= 120
    assert await ledger.reconcile(KEY, epoch, present=True, receipt=RECEIPT)
    assert await ledger.reconcile(KEY, epoch, present=True, receipt=RECEIPT)
    answer = await claim(ledger, operation())
    assert isinstance(answer, Settled)
    assert (S.RECONCILED_APPLIED, RECEIPT) == (answer.state, answer.receipt)


async def test_an_absence_inside_the_quiet_period_proves_nothing(ledger: Ledger) -> None:
    """A commit may come late, so an early reading that finds nothing moves nothing."""
    epoch = await dispatched(ledger, operation())
    await ledger.mark_unknown(KEY, epoch)
    early = await ledger.reconcile(KEY, epoch, present=False)
    assert (MoveCode.TOO_EARLY, S.UNKNOWN, False) == (early.code, early.state, bool(early))
    assert 0 < early.retry_after_seconds <= 120
    assert isinstance(await claim(ledger, operation()), InDoubt)


async def test_a_late_commit_is_found_before_anything_is_sent_again(
    ledger: Ledger, store: Store
) -> None:
    """Even a write read back as absent may turn out to be there, and is then settled."""
    epoch = await dispatched(ledger, operation())
    await ledger.mark_unknown(KEY, epoch)
    await shift(store, "dispatched_at", timedelta(seconds=-121))
    assert await ledger.reconcile(KEY, epoch, present=False)
    assert await ledger.reconcile(KEY, epoch, present=True, receipt=RECEIPT)
    assert isinstance(await claim(ledger, operation()), Settled)


async def test_an_absent_write_is_sent_again_only_so_often(store: Store) -> None:
    """Each time takes a reading after the quiet period; after the last, a person has to look."""
    ledger = Ledger(store, max_redispatch=1)
    epoch = await dispatched(ledger, operation())
    for expected_epoch in (2, 3):
        await ledger.mark_unknown(KEY, epoch)
        await shift(store, "dispatched_at", timedelta(seconds=-121))
        assert await ledger.reconcile(KEY, epoch, present=False)
        answer = await claim(ledger, operation())
        assert isinstance(answer, Reserved) is (expected_epoch == 2)
        if isinstance(answer, Reserved):
            epoch = reserved(answer).epoch
            assert expected_epoch == epoch
            assert await ledger.dispatch(KEY, epoch)
    assert isinstance(answer, InDoubt)
    assert answer.exhausted
    assert await ledger.attention(KEY, "sent too often", "operations")


async def test_a_zombie_cannot_settle_what_was_sent_again(ledger: Ledger, store: Store) -> None:
    """After a re-dispatch the first attempt's answer is fenced off."""
    first = await dispatched(ledger, operation())
    await ledger.mark_unknown(KEY, first)
    await shift(store, "dispatched_at", timedelta(seconds=-121))
    await ledger.reconcile(KEY, first, present=False)
    second = reserved(await claim(ledger, operation())).epoch
    assert await ledger.dispatch(KEY, second)
    fenced = Moved(code=MoveCode.FENCED, state=S.DISPATCHED)
    assert fenced == await ledger.settle(KEY, first, S.APPLIED, RECEIPT)


async def test_an_effect_seen_late_by_its_own_attempt_counts(ledger: Ledger) -> None:
    """An attempt that was given up as unknown may still report the effect that it saw."""
    epoch = await dispatched(ledger, operation())
    await ledger.mark_unknown(KEY, epoch)
    expected = Moved(code=MoveCode.DONE, state=S.RECONCILED_APPLIED)
    assert expected == await ledger.settle(KEY, epoch, S.APPLIED, RECEIPT)
    assert expected == await ledger.settle(KEY, epoch, S.APPLIED, RECEIPT)
    illegal = Moved(code=MoveCode.ILLEGAL, state=S.RECONCILED_APPLIED)
    assert illegal == await ledger.settle(KEY, epoch, S.FAILED, RECEIPT)


async def test_reconciling_present_needs_a_receipt(ledger: Ledger) -> None:
    """What was found has to be answerable from then on."""
    epoch = await dispatched(ledger, operation())
    await ledger.mark_unknown(KEY, epoch)
    with pytest.raises(ValueError, match="needs a receipt"):
        await ledger.reconcile(KEY, epoch, present=True)


async def test_a_dispatched_write_is_not_reconciled_before_it_is_unknown(ledger: Ledger) -> None:
    """The attempt that may still be calling has to be given up first."""
    epoch = await dispatched(ledger, operation())
    illegal = Moved(code=MoveCode.ILLEGAL, state=S.DISPATCHED)
    assert illegal == await ledger.reconcile(KEY, epoch, present=True, receipt=RECEIPT)
    assert illegal == await ledger.reconcile(KEY, epoch, present=False)


async def test_a_rate_limit_takes_a_write_back(ledger: Ledger, store: Store) -> None:
    """On the far end's word that it did nothing, the write waits and goes again."""
    epoch = await dispatched(ledger, operation())
    released = await ledger.release(KEY, epoch, retry_after_seconds=60, reason="rate_limited")
    assert Moved(code=MoveCode.DONE, state=S.RESERVED) == released
    assert isinstance(await claim(ledger, operation()), Busy)
    await shift(store, "not_before", timedelta(seconds=-61))
    second = reserved(await claim(ledger, operation())).epoch
    assert 2 == second
    assert await ledger.dispatch(KEY, second)


async def test_rate_limits_end_in_a_failure(store: Store) -> None:
    """A far end that always says "later" ends the write as failed, for good."""
    ledger = Ledger(store, max_redispatch=0)
    epoch = await dispatched(ledger, operation())
    released = await ledger.release(KEY, epoch, retry_after_seconds=60)
    assert Moved(code=MoveCode.DONE, state=S.FAILED) == released


async def test_a_cancelled_write_is_over_for_its_version(ledger: Ledger) -> None:
    """Given up before any effect, it answers so; a newer version with an approval may try."""
    await claim(ledger, operation())
    assert await ledger.cancel(KEY, 1, "kill switch")
    assert await ledger.cancel(KEY, 1, "kill switch")
    answer = await claim(ledger, operation())
    assert isinstance(answer, Settled)
    assert (S.CANCELLED, None) == (answer.state, answer.receipt)
    newer = reserved(await claim(ledger, operation(version=7)))
    assert (2, True) == (newer.epoch, newer.taken_over)
    assert await ledger.dispatch(KEY, 2)


async def test_attention_names_a_reason_and_an_owner(ledger: Ledger) -> None:
    """What nobody can settle is listed for a person, who settles it by reading."""
    epoch = await dispatched(ledger, operation())
    illegal = Moved(code=MoveCode.ILLEGAL, state=S.DISPATCHED)
    assert illegal == await ledger.attention(KEY, "too early", "operations")
    await ledger.mark_unknown(KEY, epoch)
    assert await ledger.attention(KEY, "the tracker cannot be read", "operations")
    (listed,) = await ledger.list(attention_only=True)
    assert (S.ATTENTION, "the tracker cannot be read", "operations") == (
        listed.state,
        listed.reason,
        listed.attention_owner,
    )
    assert isinstance(await claim(ledger, operation()), InDoubt)
    assert await ledger.reconcile(KEY, epoch, present=True, receipt=RECEIPT)
    assert () == await ledger.list(attention_only=True)


async def test_a_reserved_write_needs_a_person_only_if_it_was_sent_before(
    ledger: Ledger, store: Store
) -> None:
    """One that was never sent has done nothing; of one that was, a part may be done."""
    first = reserved(await claim(ledger, operation())).epoch
    illegal = Moved(code=MoveCode.ILLEGAL, state=S.RESERVED)
    assert illegal == await ledger.attention(KEY, "half done", "operations")
    assert await ledger.dispatch(KEY, first)
    assert await ledger.mark_unknown(KEY, first)
    await shift(store, "dispatched_at", timedelta(seconds=-121))
    assert await ledger.reconcile(KEY, first, present=False)
    second = reserved(await claim(ledger, operation()))
    assert 1 == second.dispatches
    fenced = Moved(code=MoveCode.FENCED, state=S.RESERVED)
    assert fenced == await ledger.attention(KEY, "half done", "operations", epoch=first)
    assert await ledger.attention(KEY, "half done", "operations", epoch=second.epoch)
    assert isinstance(await claim(ledger, operation()), InDoubt)


async def test_a_failed_write_can_need_attention(ledger: Ledger) -> None:
    """A failure that a person has to repair is listed, and still answers its receipt."""
    epoch = await dispatched(ledger, operation())
    await ledger.settle(KEY, epoch, S.FAILED, b"403", reason="no rights")
    assert await ledger.attention(KEY, "no rights", "operations")
    (listed,) = await ledger.list(attention_only=True)
    assert S.FAILED == listed.state
    assert isinstance(await claim(ledger, operation()), Settled)


async def test_operations_are_listed_oldest_first(ledger: Ledger) -> None:
    """A list may be narrowed to a run or to states, and shows what was asked."""
    for key in ("op_b", "op_a"):
        await claim(ledger, operation(key, workflow_id=f"run {key}"))
    assert ["op_b", "op_a"] == [found.operation_key for found in await ledger.list()]
    (mine,) = await ledger.list(workflow_id="run op_a")
    assert (operation("op_a", workflow_id="run op_a").labels, 1) == (mine.labels, mine.epoch)
    assert () == await ledger.list(states=[S.APPLIED])
    assert 2 == len(await ledger.list(states=[S.RESERVED]))
    assert 1 == len(await ledger.list(limit=1))


async def test_any_text_comes_back_exactly(ledger: Ledger) -> None:
    """Names that a model or a caller chose may hold NUL, lone surrogates and backslashes."""
    odd = "a\x00b\ud800c\\u0000"
    row = operation(operation_id=odd, workflow_id=odd, tenant=odd, labels=(odd,))
    await claim(ledger, row)
    found = await ledger.get(KEY)
    assert found is not None
    assert (odd, odd, odd, (odd,)) == (
        found.operation_id,
        found.workflow_id,
        found.tenant,
        found.labels,
    )
    assert 1 == len(await ledger.list(workflow_id=odd))
