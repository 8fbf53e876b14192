"""The ledger is held against its trail: a row that was moved by hand is found."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from sqlalchemy import text

from tests.unit.storage.samples import RECEIPT, approval, claim, dispatched, operation
from triage.contracts.canonical import digest_of
from triage.storage.approvals import ApprovalRow, Approvals
from triage.storage.audit import AuditEntry, append
from triage.storage.audit_ledger import Difference, LedgerFinding
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.leftovers import acknowledge
from triage.storage.retention import purge_settled
from triage.storage.transitions import OperationState as S

ON_SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


async def test_every_way_of_moving_a_write_holds(store: Store) -> None:
    """Moved, told to a person, noted, looked at and purged: trail and ledger say the same."""
    ledger = Ledger(store)
    await claim(ledger, operation("op_1"))
    failed = await dispatched(ledger, operation("op_2"))
    await ledger.settle("op_2", failed, S.FAILED, RECEIPT)
    await ledger.attention("op_2", "look", "operations")
    unknown = await dispatched(ledger, operation("op_3", tenant="other"))
    await ledger.mark_unknown("op_3", unknown)
    await ledger.attention("op_3", "look", "operations")
    assert [] == await verify(store)
    async with store.write() as connection:
        at = await store.now(connection)
        note = AuditEntry(tenant="default", kind="operation.noted", subject="op_1", at=at)
        await append(connection, note)
    await acknowledge(store, "op_2", "ann")
    assert [] == await verify(store)
    async with store.read() as connection:
        later = await store.now(connection) + timedelta(days=1)
    assert 1 == await purge_settled(store, later)
    assert [] == await verify(store)


@pytest.mark.parametrize(
    ("statement", "seq", "code"),
    [
        ("UPDATE operations SET state = 'unknown'", 3, Difference.STATE),
        ("UPDATE operations SET epoch = 7", 3, Difference.EPOCH),
        ("DELETE FROM operations", 3, Difference.MISSING),
        ("UPDATE operations SET operation_key = 'op_2'", 0, Difference.UNAUDITED),
    ],
)
async def test_a_row_that_was_moved_by_hand_is_found(
    store: Store, statement: str, seq: int, code: Difference
) -> None:
    """Its last entry is named, with what differs; the chain itself holds."""
    await dispatched(Ledger(store), operation())
    async with store.write() as connection:
        await connection.execute(text(statement))
    key = "op_2" if code is Difference.UNAUDITED else "op_1"
    finding = LedgerFinding(tenant_key=digest_of("default"), seq=seq, code=code, operation_key=key)
    found = await verify(store)
    assert finding in found
    others = [one.code for one in found if one != finding]
    assert ([Difference.MISSING] if code is Difference.UNAUDITED else []) == others


@pytest.mark.parametrize(
    "edit",
    [
        "receipt = CAST('{}' AS BLOB)",
        "receipt_digest = 'sha256:0'",
        """labels = '["x"]'""",
        "arguments = '[]'",
        "target = '{}'",
        "operation_type = 'undo_labels'",
        "digest = 'sha256:0'",
        "version = 77",
        "tenant = 'other'",
        "scope = 'other'",
        "workflow_id = 'other'",
        "workflow_key = 'other'",
        "operation_id = 'other'",
    ],
)
@ON_SQLITE
async def test_what_a_row_is_about_is_held_against_the_trail(store: Store, edit: str) -> None:
    """Its content, its receipt, its version and whose it is: each edited by hand is found."""
    ledger = Ledger(store)
    epoch = await dispatched(ledger, operation())
    await ledger.settle("op_1", epoch, S.APPLIED, RECEIPT)
    assert [] == await verify(store)
    async with store.write() as connection:
        await connection.execute(text(f"UPDATE operations SET {edit}"))  # noqa: S608 - ours
    assert [Difference.CONTENT] == [finding.code for finding in await verify(store)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE approvals SET approver = 'mallory'",
        "UPDATE approvals SET source = 'token'",
        "UPDATE approvals SET digest = 'sha256:0'",
        "UPDATE approvals SET version = 77",
        "DELETE FROM approvals",
    ],
)
@ON_SQLITE
async def test_an_approval_is_held_against_the_trail(store: Store, statement: str) -> None:
    """One that was edited, or taken out, is found by the entry that recorded it."""
    await dispatched(Ledger(store), operation())
    assert [] == await verify(store)
    async with store.write() as connection:
        await connection.execute(text(statement))
    assert {Difference.APPROVAL} == {finding.code for finding in await verify(store)}


@pytest.mark.parametrize(
    "edit",
    [
        "expires_at = '2099-01-01 00:00:00.000000'",
        "expires_at = NULL",
        "expires_at = 'zz'",
        "token_id = 'sha256:0'",
        "token_id = NULL",
        "note_digest = 'sha256:0'",
        "note_digest = NULL",
    ],
)
@ON_SQLITE
async def test_when_an_approval_ends_and_whose_it_is_is_held_against_the_trail(
    store: Store, edit: str
) -> None:
    """One that was made to last, or was given another token or note by hand, is found."""
    decision = _signed()
    await Approvals(store).record(decision, "default", key_id="key")
    assert [] == await verify(store)
    async with store.write() as connection:
        await connection.execute(text(f"UPDATE approvals SET {edit}"))  # noqa: S608 - ours
    key = decision.operation_key
    assert [(Difference.APPROVAL, 1, key)] == [
        (found.code, found.seq, found.operation_key)
        for found in await verify(store)
        if isinstance(found, LedgerFinding)
    ]


def _signed() -> ApprovalRow:
    """An approval with an end, a token and a note."""
    ends = datetime(2030, 1, 1, 2, 3, 4, 5, timezone(timedelta(hours=2)))
    return approval(operation(), expires_at=ends, token_id="sha256:1", note_digest="sha256:2")


async def test_an_approval_that_ends_is_as_its_entry_says(store: Store) -> None:
    """Its end is an instant: in which zone it was told is no difference, on neither database."""
    await Approvals(store).record(_signed(), "default", key_id="key")
    assert [] == await verify(store)


@ON_SQLITE
async def test_a_row_that_cannot_be_read_is_found(store: Store) -> None:
    """It is no state, so it cannot be compared."""
    await dispatched(Ledger(store), operation())
    async with store.write() as connection:
        await connection.execute(text("UPDATE operations SET epoch = 'zz'"))
    [finding] = await verify(store)
    assert Difference.UNREADABLE == finding.code


@ON_SQLITE
async def test_a_head_with_an_unreadable_time_still_takes_entries(store: Store) -> None:
    """Nothing of the head is read but what an entry follows on."""
    ledger = Ledger(store)
    epoch = await dispatched(ledger, operation())
    async with store.write() as connection:
        await connection.execute(text("UPDATE audit_heads SET updated_at = 'zz'"))
    assert await ledger.mark_unknown("op_1", epoch)
    assert [] == await verify(store)
