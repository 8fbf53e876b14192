"""What a backfill leaves out when it compares with what people did."""

from __future__ import annotations

from tests.unit.storage.samples import RECEIPT, dispatched, operation
from triage.contracts.canonical import canonical_json
from triage.storage.backfills import labels_we_wrote
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.transitions import OperationState


async def test_our_own_labels_are_known_in_any_letters(store: Store) -> None:
    """A label that we put on is no label of a person's, however the repository was written."""
    ledger = Ledger(store, lease_seconds=60, quiet_period_seconds=120)
    target = canonical_json({"repository": "Acme/Shop", "issue": "7"}).decode()
    epoch = await dispatched(ledger, operation(target=target))
    await ledger.settle("op_1", epoch, OperationState.APPLIED, RECEIPT)
    assert {"7": {"bug"}} == await labels_we_wrote(store, "acme/shop")
    assert {} == await labels_we_wrote(store, "acme/shops")


async def test_what_was_undone_is_ours_no_longer(store: Store) -> None:
    """A label that we put on and took off again is a person's where it is found later."""
    ledger = Ledger(store, lease_seconds=60, quiet_period_seconds=120)
    target = canonical_json({"repository": "acme/shop", "issue": "7"}).decode()
    for row in (
        operation("op_1", target=target, labels=("bug", "api")),
        operation("undo_1", target=target, labels=("bug",), operation_type="undo_labels"),
    ):
        epoch = await dispatched(ledger, row)
        await ledger.settle(row.operation_key, epoch, OperationState.APPLIED, RECEIPT)
    assert {"7": {"api"}} == await labels_we_wrote(store, "acme/shop")
