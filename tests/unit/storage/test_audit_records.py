"""Vouchers, accepted rules, stop switches and tombstones are held against the trail, both ways."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from tests.unit.storage.samples import RECEIPT, approval, claim, dispatched, operation
from triage.contracts.canonical import digest_of
from triage.policy.rules import BUILTIN_RULES
from triage.storage.acceptances import Acceptances
from triage.storage.approvals import Approvals
from triage.storage.audit_ledger import Difference
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.retention import purge_settled
from triage.storage.switches import Switches
from triage.storage.transitions import OperationState
from triage.storage.vouchers import Voucher

ON_SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
VOUCHER = Voucher(operation_key="op_1", version=3, tracker="github", person_id="7", login="ann")


async def _fill(store: Store) -> None:
    approvals, switches, acceptances = Approvals(store), Switches(store), Acceptances(store)
    decision = approval(operation("op_1"))
    for voucher in (VOUCHER, VOUCHER, replace(VOUCHER, person_id="8")):
        await approvals.record(decision, "default", voucher)
    for number in (1, 2):
        replaces = await acceptances.current()
        rules = BUILTIN_RULES.model_copy(update={"approvals_required": number + 1})
        await acceptances.accept(rules, replaces=replaces, widens=(), by="ann")
    await switches.stop("ann", "everybody")
    await switches.stop("ann", "one", tenant="other")
    await switches.allow("bob", tenant="other")
    await switches.stop("ann", "no tenant's name", tenant="")
    await _purge(store)


async def _purge(store: Store) -> None:
    """Leave the tombstones of a write that was done, and of one that was given up."""
    ledger = Ledger(store)
    epoch = await dispatched(ledger, operation("op_done"))
    await ledger.settle("op_done", epoch, OperationState.APPLIED, RECEIPT)
    await claim(ledger, operation("op_given_up"))
    await ledger.cancel("op_given_up", 1, "enough")
    async with store.read() as connection:
        later = await store.now(connection) + timedelta(days=1)
    assert 2 == await purge_settled(store, later)


async def test_what_was_recorded_holds(store: Store) -> None:
    """Vouched for, accepted, stopped and allowed again, purged: rows and trail say the same."""
    await _fill(store)
    assert [] == await verify(store)


EDITS = {
    Difference.VOUCHER: [
        "DELETE FROM vouchers WHERE person_id = '7'",
        "UPDATE vouchers SET person_id = '9' WHERE person_id = '7'",
        "UPDATE vouchers SET version = 77 WHERE person_id = '7'",
        "UPDATE vouchers SET operation_key = 'op_2' WHERE person_id = '7'",
    ],
    Difference.ACCEPTANCE: [
        "DELETE FROM acceptances WHERE seq = 2",
        "UPDATE acceptances SET digest = 'sha256:0' WHERE seq = 2",
        "UPDATE acceptances SET \"by\" = 'mallory' WHERE seq = 2",
        "UPDATE acceptances SET seq = 3 WHERE seq = 2",
    ],
    Difference.SWITCH: [
        "DELETE FROM switches WHERE tenant IS NULL",
        "UPDATE switches SET stopped = NOT stopped WHERE tenant = 'other'",
        "UPDATE switches SET tenant = 'mine' WHERE tenant = 'other'",
        "UPDATE switches SET reason = 'mine' WHERE tenant IS NULL",
        "UPDATE switches SET name = 'writes-none' WHERE tenant IS NULL",
    ],
    Difference.TOMBSTONE: [
        "DELETE FROM operation_tombstones WHERE operation_key = 'op_done'",
        "UPDATE operation_tombstones SET state = 'applied' WHERE operation_key = 'op_given_up'",
        "UPDATE operation_tombstones SET receipt_digest = NULL WHERE operation_key = 'op_done'",
        "UPDATE operation_tombstones SET digest = 'sha256:0' WHERE operation_key = 'op_done'",
        "UPDATE operation_tombstones SET operation_key = 'op_2' WHERE operation_key = 'op_done'",
    ],
}


@pytest.mark.parametrize(
    ("code", "statement"), [(code, edit) for code, edits in EDITS.items() for edit in edits]
)
@ON_SQLITE
async def test_a_row_that_was_edited_or_taken_out_is_found(
    store: Store, code: Difference, statement: str
) -> None:
    """The chain holds, and what is told of is not what is there."""
    await _fill(store)
    async with store.write() as connection:
        await connection.execute(text(statement))
    assert {code} == {finding.code for finding in await verify(store)}


@pytest.mark.parametrize(
    ("code", "table", "values"),
    [
        (Difference.VOUCHER, "vouchers", "'k', 'op_9', 1, 'github', '7', 'ann'"),
        (Difference.ACCEPTANCE, "acceptances", "1, 'sha256:0', 'sha256:1', 'mallory'"),
        (Difference.SWITCH, "switches", "'writes', NULL, TRUE, 'mallory', ''"),
        (Difference.TOMBSTONE, "operation_tombstones", "'op_9', 'sha256:0', 'applied', NULL"),
    ],
)
async def test_a_row_that_was_put_in_is_found(
    store: Store, code: Difference, table: str, values: str
) -> None:
    """No entry tells of it, and the operation is named if it is about one."""
    async with store.write() as connection:
        now = "CURRENT_TIMESTAMP" if not store.is_sqlite else "'2026-01-01 00:00:00.000000'"
        await connection.execute(text(f"INSERT INTO {table} VALUES ({values}, {now})"))  # noqa: S608 - ours
    [finding] = await verify(store)
    named = "op_9" if "op_9" in values else ""
    assert (code, 0, named) == (finding.code, finding.seq, getattr(finding, "operation_key", None))


@ON_SQLITE
async def test_a_finding_names_its_entry(store: Store) -> None:
    """The voucher's operation, and the last entry of a switch, in the chain that has it."""
    await _fill(store)
    async with store.write() as connection:
        for statement in ("DELETE FROM vouchers WHERE person_id = '7'", "DELETE FROM switches"):
            await connection.execute(text(statement))
    told = [
        (f.tenant_key, f.code.value, getattr(f, "operation_key", None)) for f in await verify(store)
    ]
    every, other = digest_of(""), digest_of("other")
    assert (digest_of("default"), "voucher_differs", "op_1") in told
    switches = [key for key, code, _ in told if code == "switch_differs"]
    assert sorted([every, every, other]) == sorted(switches)
