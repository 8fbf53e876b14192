"""Who carries a backfill, and what it leaves out when it compares with what people did."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.unit.storage.samples import RECEIPT, dispatched, operation
from triage.contracts.canonical import canonical_json
from triage.contracts.options import Mode
from triage.ingest.backfill import Wanted
from triage.storage.backfills import LEASE, BackfillHeldError, Backfills, labels_we_wrote
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


WANTED = Wanted(repository="acme/shop", since=None, until=None, limit=1, mode=Mode.SHADOW)


async def test_one_process_at_a_time_carries_a_repository_s_backfill(store: Store) -> None:
    """Another one of it is refused, whatever it asks for; one of another repository is not."""
    kept = Backfills(store)
    first, _ = await kept.begin(WANTED.to_json())
    for same in (WANTED, replace(WANTED, repository="Acme/Shop", since=datetime.now(UTC))):
        with pytest.raises(BackfillHeldError):
            await kept.begin(same.to_json())
    await kept.begin(replace(WANTED, repository="acme/other").to_json())
    await kept.let_go(first)
    assert (first, True) == await kept.begin(WANTED.to_json())
    await kept.finish(first)
    assert first != (await kept.begin(WANTED.to_json()))[0]


async def test_a_backfill_whose_process_was_killed_is_held_no_longer_than_a_lease(
    store: Store,
) -> None:
    """Each word of a process that lives holds it for another lease."""
    kept = Backfills(store)
    first, _ = await kept.begin(WANTED.to_json())
    store._offset += LEASE * 0.9
    await kept.hold(first)
    store._offset += LEASE * 0.9
    with pytest.raises(BackfillHeldError):
        await kept.begin(WANTED.to_json())
    store._offset += LEASE * 0.2
    assert (first, True) == await kept.begin(WANTED.to_json())
