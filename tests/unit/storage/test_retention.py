"""Old writes leave a tombstone, which answers in their place for ever."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.unit.storage.samples import RECEIPT, claim, dispatched, operation
from triage.contracts.canonical import digest_of_bytes
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.operations import Conflict, ConflictCode, Settled
from triage.storage.retention import purge_settled
from triage.storage.transitions import OperationState

S = OperationState


@pytest.fixture
def ledger(store: Store) -> Ledger:
    """A ledger with the timings of production."""
    return Ledger(store)


async def _soon(store: Store) -> datetime:
    async with store.read() as connection:
        return await store.now(connection) + timedelta(seconds=1)


async def test_a_purged_write_is_never_done_again(ledger: Ledger, store: Store) -> None:
    """A repeat after the purge gets the state and the receipt's digest; other content conflicts."""
    epoch = await dispatched(ledger, operation())
    await ledger.settle("op_1", epoch, S.APPLIED, RECEIPT)
    assert 1 == await purge_settled(store, await _soon(store))
    assert await ledger.get("op_1") is None
    expected = Settled(
        state=S.APPLIED, receipt=None, receipt_digest=digest_of_bytes(RECEIPT), purged=True
    )
    assert expected == await claim(ledger, operation())
    conflict = Conflict(code=ConflictCode.DIGEST_MISMATCH, state=S.APPLIED)
    assert conflict == await claim(ledger, operation(labels=("security",)))
    assert () == await ledger.list()
    assert [] == await verify(store)


async def test_only_settled_writes_are_purged(ledger: Ledger, store: Store) -> None:
    """What is in doubt, held, young or needs a person stays."""
    await claim(ledger, operation("held"))
    await dispatched(ledger, operation("dispatched"))
    await ledger.mark_unknown("unknown", await dispatched(ledger, operation("unknown")))
    failed = await dispatched(ledger, operation("failed"))
    await ledger.settle("failed", failed, S.FAILED, b"403")
    await ledger.attention("failed", "no rights", "operations")
    assert 0 == await purge_settled(store, await _soon(store))
    done = await dispatched(ledger, operation("done"))
    await ledger.settle("done", done, S.APPLIED, RECEIPT)
    assert 0 == await purge_settled(store, await _soon(store) - timedelta(days=90))
    assert 1 == await purge_settled(store, await _soon(store))
    assert {"held", "dispatched", "unknown", "failed"} == {
        found.operation_key for found in await ledger.list()
    }


async def test_a_purge_is_bounded(ledger: Ledger, store: Store) -> None:
    """A purge is a short transaction, however much is due."""
    for number in range(3):
        key = f"op_{number}"
        await claim(ledger, operation(key))
        await ledger.cancel(key, 1)
    soon = await _soon(store)
    assert [2, 1, 0] == [await purge_settled(store, soon, limit=2) for _ in range(3)]
