"""A list of the ledger shows every row, whatever somebody wrote into one of them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from tests.unit.storage.samples import RECEIPT, claim, dispatched, operation
from triage.storage.engine import Store
from triage.storage.errors import StorageUnreadable
from triage.storage.ledger import Ledger
from triage.storage.ledger_listing import UnreadableOperation, list_readable
from triage.storage.leftovers import find_leftovers
from triage.storage.retention import purge_settled
from triage.storage.transitions import OperationState as S

ON_SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
ON_POSTGRESQL = pytest.mark.parametrize(
    "store_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


async def _listed_after(
    store: Store, values: str
) -> dict[str | None, UnreadableOperation | type[object]]:
    """List two operations after one was edited; the intact one is shown by its type."""
    ledger = Ledger(store)
    await dispatched(ledger, operation("op_1"))
    await claim(ledger, operation("op_2", workflow_id="odd \x00\ud800 \\ run"))
    statement = f"UPDATE operations SET {values} WHERE operation_key = 'op_1'"  # noqa: S608 - ours
    async with store.write() as connection:
        await connection.execute(text(statement))
    found = await list_readable(store)
    (intact,) = [row for row in found if row.operation_key == "op_2"]
    assert await ledger.get("op_2") == intact
    return {
        row.operation_key: row if isinstance(row, UnreadableOperation) else type(row)
        for row in found
        if row is not intact
    }


async def test_what_nobody_edited_is_read_as_ever(store: Store) -> None:
    """Both ways of reading the ledger give the same records."""
    ledger = Ledger(store)
    await dispatched(ledger, operation("op_1", labels=("bug", "\ud800")))
    await claim(ledger, operation("op_2"))
    assert await ledger.list() == await list_readable(store)
    assert () == await list_readable(store, attention_only=True)


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ("target = 'nojson'", "target"),
        ("target = '[]'", "target"),
        ("labels = 'zz'", "labels"),
        ("labels = '[1]'", "labels"),
    ],
)
async def test_an_unreadable_row_hides_no_other(store: Store, values: str, column: str) -> None:
    """It is named by its key and by what cannot be read."""
    expected = {"op_1": UnreadableOperation("op_1", (column,))}
    assert expected == await _listed_after(store, values)


@ON_SQLITE
@pytest.mark.parametrize(
    ("values", "column"),
    [
        ("updated_at = 'zz'", "updated_at"),
        ("created_at = 7", "created_at"),
        ("version = 'zz'", "version"),
        ("workflow_id = x'ff00'", "workflow_id"),
        ("reason = CAST(x'ff' AS TEXT)", "reason"),
        ("receipt = 'text'", "receipt"),
    ],
)
async def test_a_value_of_any_type_hides_no_other_row(
    store: Store, values: str, column: str
) -> None:
    """SQLite keeps any value in any column; the others are listed all the same."""
    expected = {"op_1": UnreadableOperation("op_1", (column,))}
    assert expected == await _listed_after(store, values)


@ON_SQLITE
@pytest.mark.parametrize(
    "values",
    ["updated_at = 'zz'", "version = 'zz'", "labels = 'zz'", "receipt = 'text'"],
)
async def test_what_acts_on_an_unreadable_row_fails_by_name(store: Store, values: str) -> None:
    """Reading it and moving it end as one typed error, and a list of all as the same one."""
    ledger = Ledger(store)
    epoch = await dispatched(ledger, operation("op_1"))
    async with store.write() as connection:
        await connection.execute(text(f"UPDATE operations SET {values}"))  # noqa: S608 - ours
    for read in (
        ledger.get("op_1"),
        ledger.list(),
        ledger.mark_unknown("op_1", epoch),
        ledger.still_holds("op_1", epoch),
    ):
        with pytest.raises(StorageUnreadable, match="somebody edited it"):
            await read


@ON_SQLITE
async def test_an_unreadable_row_keeps_no_other_from_being_looked_after(store: Store) -> None:
    """It is among the leftovers, as what it is, and what is old is purged beside it."""
    ledger = Ledger(store)
    for key in ("op_1", "op_2"):
        await ledger.mark_unknown(key, await dispatched(ledger, operation(key)))
    for key in ("op_3", "op_4"):
        await ledger.settle(key, await dispatched(ledger, operation(key)), S.FAILED, RECEIPT)
    async with store.write() as connection:
        for key in ("op_1", "op_3"):
            spoil = text("UPDATE operations SET target = 'no' WHERE operation_key = :key")
            await connection.execute(spoil, {"key": key})
        later = await store.now(connection) + timedelta(days=1)
    unreadable, readable = await find_leftovers(store)
    assert UnreadableOperation("op_1", ("target",)) == unreadable
    assert await ledger.get("op_2") == readable
    assert 1 == await purge_settled(store, later)
    assert None is await ledger.get("op_4")


@ON_SQLITE
async def test_a_row_without_a_readable_key_is_listed(store: Store) -> None:
    """Not even the key has to be a text."""
    expected = {None: UnreadableOperation(None, ("operation_key",))}
    assert expected == await _listed_after(store, "operation_key = x'ff'")


@ON_POSTGRESQL
async def test_a_time_that_python_does_not_have_hides_no_other_row(store: Store) -> None:
    """PostgreSQL keeps times that no program here can read."""
    expected = {"op_1": UnreadableOperation("op_1", ("updated_at",))}
    assert expected == await _listed_after(store, "updated_at = 'infinity'")
