"""`triage operations` lists what can be read and names what cannot."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import text

from tests.cli.conftest import Triage
from tests.cli.stored import in_store
from tests.unit.storage.samples import claim, operation
from triage.storage.engine import Store
from triage.storage.ledger import Ledger


async def _spoilt(store: Store) -> None:
    """Two operations, the first of which somebody edited by hand."""
    await claim(Ledger(store), operation("op_1"))
    await claim(Ledger(store), operation("op_2"))
    spoil = "UPDATE operations SET updated_at = 'zz', target = 'no' WHERE operation_key = 'op_1'"
    async with store.write() as connection:
        await connection.execute(text(spoil))


def test_an_unreadable_row_hides_no_other(triage: Triage, tmp_path: Path) -> None:
    """Everything is printed, the unreadable row with its key and an error, and the status is 1."""
    in_store(tmp_path, _spoilt)
    answer = triage("operations", "--format", "json")
    assert 1 == answer.status
    spoilt, intact = answer.json()
    assert {"operation_key": "op_1", "error": "cannot be read: updated_at, target"} == spoilt
    assert "op_2" == intact["operation_key"]
    table = triage("operations", "--format", "text")
    assert 1 == table.status
    assert ("unreadable" in table.out, "op_2" in table.out) == (True, True)
    assert table.err.startswith("error: the ledger has rows that cannot be read (rows: 1)")
