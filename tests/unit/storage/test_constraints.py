"""The database itself refuses rows that make no sense, whoever writes them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Table, insert, update

from tests.unit.storage.samples import NOW, RECEIPT, approval, claim, dispatched, operation
from triage.storage.engine import Store
from triage.storage.errors import StorageRejected
from triage.storage.ledger import Ledger
from triage.storage.schema import (
    approvals,
    deliveries,
    documents,
    evidence,
    metadata,
    operations,
    requests,
    tracker_issue_labels,
)
from triage.storage.transitions import OperationState

CHECKS = [
    (operations, {"state": "done"}, "state_known"),
    (operations, {"epoch": 0}, "epoch_positive"),
    (operations, {"dispatches": -1}, "dispatches_counted"),
    (operations, {"receipt": b"x" * 4097}, "receipt_small"),
    (operations, {"state": "applied", "receipt": None}, "applied_has_receipt"),
    (operations, {"state": "unknown", "dispatched_at": None}, "effect_was_dispatched"),
    (approvals, {"verdict": "maybe", "consumed_by": None, "consumed_at": None}, "verdict_known"),
    (approvals, {"source": "hearsay"}, "source_known"),
    (approvals, {"consumed_at": None}, "consumption_complete"),
    (approvals, {"verdict": "reject"}, "rejection_unconsumed"),
]


@pytest.mark.parametrize(
    ("table", "values", "name"), CHECKS, ids=[f"{t.name} {name}" for t, _, name in CHECKS]
)
async def test_a_row_that_makes_no_sense_is_refused(
    store: Store, table: Table, values: dict[str, Any], name: str
) -> None:
    """No program, old or new, can put a write or an approval into an impossible shape."""
    await dispatched(Ledger(store), operation())
    with pytest.raises(StorageRejected) as caught:
        async with store.write() as connection:
            await connection.execute(update(table).values(**values))
    assert f"ck_{table.name}_{name}" == caught.value.constraint


async def test_every_table_with_a_state_knows_its_states() -> None:
    """Each closed set of words in the schema is checked by the database."""
    closed = {"state", "verdict", "action"}
    unchecked = [
        f"{table.name}.{column.name}"
        for table in metadata.tables.values()
        for column in table.columns
        if column.name in closed
        and not any(str(c.name).endswith(f"{column.name}_known") for c in table.constraints)
    ]
    # An event's action is GitHub's word, an open set.
    assert ["deliveries.action"] == unchecked


async def test_content_is_there_or_purged(store: Store) -> None:
    """Evidence and documents cannot be without content unless it was purged."""
    shared = {"size_bytes": 0, "key_id": "", "created_at": NOW}
    names = ("scope", "call", "after", "evidence_id", "tool", "source", "locator")
    rows: list[tuple[Table, dict[str, Any]]] = [
        (documents, {"scope": "", "kind": "policy", "digest": "d", **shared}),
        (
            evidence,
            {
                **dict.fromkeys(names, ""),
                "version": 1,
                "arguments": b"",
                "digest": "d",
                **shared,
            },
        ),
    ]
    for table, row in rows:
        with pytest.raises(StorageRejected, match="or_purged"):
            async with store.write() as connection:
                await connection.execute(insert(table).values(**row))


async def test_one_decision_an_operation_and_version(store: Store) -> None:
    """The unique keys hold even for a writer that does not ask first."""
    row = operation()
    await claim(Ledger(store), row)
    again = vars(approval(row, approval_id="again", decided_at=NOW))
    with pytest.raises(StorageRejected):
        async with store.write() as connection:
            await connection.execute(insert(approvals).values(**again))


async def test_labels_stand_only_on_issues(store: Store) -> None:
    """A label on an issue refers to both, on SQLite too."""
    row = {"issue_key": "none", "label_key": "none", "position": 1, "added_at": NOW}
    with pytest.raises(StorageRejected):
        async with store.write() as connection:
            await connection.execute(insert(tracker_issue_labels).values(**row))


async def test_admission_rows_fit(store: Store) -> None:
    """The tables of admission, which nothing writes yet, take the rows that they are for."""
    async with store.write() as connection:
        await connection.execute(
            insert(requests).values(
                request_key="r",
                semantic_key="s",
                tenant="default",
                source="github",
                repository="owner/name",
                number="12",
                subject_key="k",
                content_digest="d",
                state="accepted",
                attempts=0,
                created_at=NOW,
                updated_at=NOW,
            )
        )
        await connection.execute(
            insert(deliveries).values(
                delivery_key="d",
                source="github",
                delivery_id="guid",
                event="issues",
                action="opened",
                tenant="default",
                body_digest="d",
                state="admitted",
                request_key="r",
                times_seen=1,
                received_at=NOW,
                updated_at=NOW,
            )
        )


async def test_a_receipt_of_the_full_size_is_taken(store: Store) -> None:
    """The limit is 4,096 bytes, and a receipt of just that is fine."""
    ledger = Ledger(store)
    epoch = await dispatched(ledger, operation())
    receipt = RECEIPT.ljust(4096)
    assert await ledger.settle("op_1", epoch, OperationState.APPLIED, receipt)
