"""A write that needs several people is dispatched only with so many on the audit trail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.storage.samples import approval, operation, reserved
from triage.contracts.canonical import digest_of
from triage.storage.approvals import Approvals, RefusalCode, Verdict
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.operations import MoveCode

ROW = operation()
GIVEN = approval(ROW, approver="ann")


@pytest.mark.parametrize(
    ("noted", "dispatched"),
    [
        ((), False),
        (({"approver": "ann"},), False),
        (({"approver": "bob", "verdict": Verdict.REJECT},), False),
        (({"approver": "bob", "version": 2},), False),
        (({"approver": "bob", "digest": digest_of("of other rules")},), False),
        (({"approver": "bob", "operation_digest": digest_of("another")},), False),
        (({"approver": "bob"},), True),
    ],
    ids=("alone", "twice", "a no", "another version", "other rules", "another write", "two"),
)
async def test_only_different_people_who_approved_just_this_count(
    store: Store, noted: tuple[dict[str, object], ...], *, dispatched: bool
) -> None:
    """The ledger counts for itself, whatever the run says."""
    ledger, approvals = Ledger(store), Approvals(store)
    for changes in noted:
        await approvals.note(replace(GIVEN, **changes), ROW.tenant)  # type: ignore[arg-type]  # any field
    epoch = reserved(await ledger.reserve(ROW, GIVEN)).epoch
    moved = await ledger.dispatch(ROW.operation_key, epoch, approvals=2)
    assert dispatched == bool(moved)
    if not dispatched:
        assert (MoveCode.NOT_APPROVED, RefusalCode.TOO_FEW) == (moved.code, moved.refusal)
        assert await ledger.dispatch(ROW.operation_key, epoch)


async def test_nobody_has_to_be_noted_where_one_is_enough(store: Store) -> None:
    """A write that one person approves is sent as ever."""
    ledger = Ledger(store)
    epoch = reserved(await ledger.reserve(ROW, GIVEN)).epoch
    assert await ledger.dispatch(ROW.operation_key, epoch, approvals=1)
