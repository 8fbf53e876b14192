"""What nobody holds any more is found by its row, and an absent write can end unsent."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sqlalchemy import select

from tests.unit.storage.samples import claim, dispatched, operation, reserved, shift
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.leftovers import Closing, close_absent, find_leftovers
from triage.storage.operations import InDoubt, MoveCode, OperationRecord
from triage.storage.schema import audit
from triage.storage.transitions import OperationState as S

TOLD = Closing(reason="its run is over", owner="operations", attention=True)
LOOKED = Closing(reason="read by a person", owner="ann", attention=False)
PAST = -timedelta(hours=1)


async def _found(store: Store) -> dict[str, S]:
    found = await find_leftovers(store)
    return {one.operation_key: one.state for one in found if isinstance(one, OperationRecord)}


async def _unknown(ledger: Ledger, key: str) -> int:
    epoch = await dispatched(ledger, operation(key))
    assert await ledger.mark_unknown(key, epoch)
    return epoch


async def test_what_no_attempt_holds_is_found(store: Store) -> None:
    """Without a lease, a reserved or dispatched write is left over; an unknown one always is."""
    ledger = Ledger(store)
    for key in ("op_1", "op_2"):
        reserved(await claim(ledger, operation(key)))
    for key in ("op_3", "op_4"):
        await dispatched(ledger, operation(key))
    await _unknown(ledger, "op_5")
    assert {"op_5": S.UNKNOWN} == await _found(store)
    await shift(store, "lease_until", PAST, "op_1")
    await shift(store, "lease_until", PAST, "op_3")
    expected = {"op_1": S.RESERVED, "op_3": S.DISPATCHED, "op_5": S.UNKNOWN}
    assert expected == await _found(store)
    second = await find_leftovers(store, after="op_1", limit=1)
    assert ["op_3"] == [record.operation_key for record in second]


async def test_what_is_settled_is_not_left_over(store: Store) -> None:
    """Applied, failed, cancelled and handed to a person: nobody has to find those."""
    ledger = Ledger(store)
    await ledger.settle("op_1", await dispatched(ledger, operation("op_1")), S.APPLIED, b"{}")
    await ledger.settle("op_2", await dispatched(ledger, operation("op_2")), S.FAILED, b"")
    await ledger.cancel("op_3", reserved(await claim(ledger, operation("op_3"))).epoch)
    await _unknown(ledger, "op_4")
    await ledger.attention("op_4", "the issue cannot be read", "operations")
    for key in ("op_1", "op_2", "op_3", "op_4"):
        await shift(store, "lease_until", PAST, key)
    assert {} == await _found(store)


@pytest.mark.parametrize("closing", [TOLD, LOOKED])
async def test_an_absent_write_is_found_until_somebody_knows(
    store: Store, closing: Closing
) -> None:
    """Told to a person or looked at by one, it is not found again, and its entry says by whom."""
    ledger = Ledger(store, quiet_period_seconds=0)
    epoch = await _unknown(ledger, "op_1")
    assert await ledger.reconcile("op_1", epoch, present=False)
    assert {"op_1": S.RECONCILED_ABSENT} == await _found(store)
    assert await close_absent(store, ledger.timings, "op_1", epoch, closing)
    assert {} == await _found(store)
    listed = await ledger.list(attention_only=True)
    assert closing.attention is (len(listed) == 1)
    async with store.read() as connection:
        query = select(audit.c.body).order_by(audit.c.seq.desc()).limit(1)
        entry = json.loads((await connection.execute(query)).scalar_one())
    told = entry["details"]
    assert ("operation.reconciled_absent", closing.reason, closing.owner) == (
        entry["kind"],
        told["reason"],
        told["attention_owner"],
    )
    assert [] == await verify(store)


async def test_a_closed_write_can_be_sent_only_after_another_reading(store: Store) -> None:
    """Closing makes nothing executable, however fresh it is."""
    ledger = Ledger(store, quiet_period_seconds=0)
    epoch = await _unknown(ledger, "op_1")
    assert await close_absent(store, ledger.timings, "op_1", epoch, TOLD)
    assert isinstance(await claim(ledger, operation("op_1")), InDoubt)
    assert await ledger.reconcile("op_1", epoch, present=False)
    assert epoch + 1 == reserved(await claim(ledger, operation("op_1"))).epoch


async def test_what_a_person_was_asked_about_can_be_closed(store: Store) -> None:
    """A person who looked and found nothing takes the write off the list."""
    ledger = Ledger(store, quiet_period_seconds=0)
    epoch = await _unknown(ledger, "op_1")
    await ledger.attention("op_1", "the issue cannot be read", "operations")
    assert await close_absent(store, ledger.timings, "op_1", epoch, LOOKED)
    assert () == await ledger.list(attention_only=True)


async def test_nobody_is_told_twice(store: Store) -> None:
    """A pass that had looked before somebody was told, or looked, changes nothing."""
    ledger = Ledger(store, quiet_period_seconds=0)
    epoch = await _unknown(ledger, "op_1")
    for closing in (TOLD, LOOKED):
        assert await close_absent(store, ledger.timings, "op_1", epoch, closing)
        before = await ledger.get("op_1")
        again = await close_absent(store, ledger.timings, "op_1", epoch, TOLD)
        assert (MoveCode.ILLEGAL, before) == (again.code, await ledger.get("op_1"))


async def test_inside_the_quiet_period_nothing_is_closed(store: Store) -> None:
    """An absence that proves nothing is not recorded; the time that is left is told."""
    ledger = Ledger(store)
    epoch = await _unknown(ledger, "op_1")
    moved = await close_absent(store, ledger.timings, "op_1", epoch, TOLD)
    assert (MoveCode.TOO_EARLY, S.UNKNOWN) == (moved.code, moved.state)
    assert 0 < moved.retry_after_seconds <= ledger.timings.quiet_period_seconds
    assert {"op_1": S.UNKNOWN} == await _found(store)


async def test_closing_is_fenced(store: Store) -> None:
    """Another epoch, another state or no row at all: nothing is closed."""
    ledger = Ledger(store, quiet_period_seconds=0)
    await _unknown(ledger, "op_1")
    epoch = reserved(await claim(ledger, operation("op_2"))).epoch
    close = [("op_1", 9), ("op_2", epoch), ("op_3", 1)]
    moved = [await close_absent(store, ledger.timings, key, e, TOLD) for key, e in close]
    assert [MoveCode.FENCED, MoveCode.ILLEGAL, MoveCode.MISSING] == [m.code for m in moved]
