"""A write leans on exactly one approval, which has to hold until an effect becomes possible."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.storage.samples import (
    Counts,
    approval,
    claim,
    counts,
    dispatched,
    operation,
    reserved,
    shift,
)
from triage.storage.approvals import Approvals, RefusalCode, Verdict
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.operations import MoveCode, Refused
from triage.storage.transitions import OperationState

S = OperationState
KEY = "op_1"


@pytest.fixture
def ledger(store: Store) -> Ledger:
    """A ledger with the timings of production."""
    return Ledger(store)


async def test_a_rejected_write_is_never_reserved(ledger: Ledger, store: Store) -> None:
    """The first decision stands: an approval that comes after a rejection opens nothing."""
    row = operation()
    await Approvals(store).record(approval(row, verdict=Verdict.REJECT), row.tenant)
    before = await counts(store)
    second = approval(row, approval_id="another")
    assert Refused(code=RefusalCode.REJECTED) == await ledger.reserve(row, second)
    assert before == await counts(store)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 4},
        {"operation_digest": "sha256:other"},
        {"operation_key": "op_2"},
    ],
    ids=["version", "operation digest", "operation"],
)
async def test_an_approval_of_something_else_is_refused(
    ledger: Ledger, store: Store, changes: dict[str, object]
) -> None:
    """An approval counts for exactly one operation, digest and version, or nothing is kept."""
    row = operation()
    answer = await ledger.reserve(row, approval(row, **changes))
    assert Refused(code=RefusalCode.DIGEST_MISMATCH) == answer
    assert Counts(operations=0, approvals=0, audit=0) == await counts(store)


async def test_an_approval_of_another_view_is_refused(ledger: Ledger, store: Store) -> None:
    """If the reviewer saw something else than the caller now holds, nothing is reserved."""
    row = operation()
    await Approvals(store).record(approval(row), row.tenant)
    other = approval(row, digest="sha256:another view")
    assert Refused(code=RefusalCode.DIGEST_MISMATCH) == await ledger.reserve(row, other)


async def test_a_token_serves_one_operation(ledger: Ledger) -> None:
    """A signed approval that was used for one operation opens no other."""
    row, other = operation(), operation("op_2", operation_id="op-106")
    reserved(await ledger.reserve(row, approval(row, token_id="jti-1")))
    replayed = await ledger.reserve(other, approval(other, token_id="jti-1"))
    assert Refused(code=RefusalCode.TOKEN_REPLAYED) == replayed
    assert await ledger.get("op_2") is None


async def test_an_expired_approval_reserves_nothing(ledger: Ledger, store: Store) -> None:
    """The database's clock decides whether an approval is over."""
    row = operation()
    async with store.read() as connection:
        now = await store.now(connection)
    answer = await ledger.reserve(row, approval(row, expires_at=now))
    assert Refused(code=RefusalCode.EXPIRED) == answer
    assert Counts(operations=0, approvals=0, audit=0) == await counts(store)


async def test_an_approval_that_expires_before_dispatch_stops_it(
    store: Store, store_url: str
) -> None:
    """What was reserved in time is not dispatched after the approval's end."""
    row = operation()
    async with store.read() as connection:
        soon = await store.now(connection) + timedelta(seconds=30)
    await Ledger(store).reserve(row, approval(row, expires_at=soon))
    later = await Store.open(store_url, clock_offset=timedelta(seconds=31))
    stopped = await Ledger(later).dispatch(KEY, 1)
    await later.close()
    assert (MoveCode.NOT_APPROVED, RefusalCode.EXPIRED) == (stopped.code, stopped.refusal)
    found = await Ledger(store).get(KEY)
    assert found is not None
    assert (S.RESERVED, 0) == (found.state, found.dispatches)


async def test_a_redispatch_needs_an_approval_that_still_holds(
    ledger: Ledger, store: Store, store_url: str
) -> None:
    """A write that was read back as absent is not sent again on an approval that has ended."""
    row = operation()
    async with store.read() as connection:
        soon = await store.now(connection) + timedelta(seconds=30)
    given = approval(row, expires_at=soon)
    reserved(await ledger.reserve(row, given))
    assert await ledger.dispatch(KEY, 1)
    await ledger.mark_unknown(KEY, 1)
    later = await Store.open(store_url, clock_offset=timedelta(seconds=121))
    late = Ledger(later)
    assert await late.reconcile(KEY, 1, present=False)
    answer = await late.reserve(row, given)
    await later.close()
    assert Refused(code=RefusalCode.EXPIRED) == answer


async def test_an_approval_is_used_once(ledger: Ledger, store: Store) -> None:
    """Dispatch uses the approval up for its operation, and the first use keeps its time."""
    row = operation()
    epoch = await dispatched(ledger, row)
    first = await Approvals(store).get(KEY, row.version)
    assert first is not None
    assert KEY == first.consumed_by
    await ledger.release(KEY, epoch, retry_after_seconds=0)
    second = reserved(await claim(ledger, row)).epoch
    assert await ledger.dispatch(KEY, second)
    assert first == await Approvals(store).get(KEY, row.version)


async def test_a_takeover_by_a_newer_version_needs_its_own_approval(
    ledger: Ledger, store: Store
) -> None:
    """An approval of version 3 does not carry a write of version 7."""
    row = operation()
    await claim(ledger, row)
    await shift(store, "lease_until", timedelta(seconds=-61))
    newer = replace(row, version=7)
    stale = await ledger.reserve(newer, approval(row))
    assert Refused(code=RefusalCode.DIGEST_MISMATCH) == stale
    reserved(await claim(ledger, newer))
    assert await ledger.dispatch(KEY, 2)
    used = await Approvals(store).get(KEY, 7)
    unused = await Approvals(store).get(KEY, 3)
    assert used is not None
    assert unused is not None
    assert (KEY, None) == (used.consumed_by, unused.consumed_by)
