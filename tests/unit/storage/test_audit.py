"""The audit chain shows what was changed, taken out or cut off."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sqlalchemy import Delete, TextClause, Update, delete, select, text, update

from tests.unit.storage.samples import NOW, RECEIPT, dispatched, operation
from triage.contracts.canonical import canonical_json, digest_of, digest_of_bytes
from triage.storage.audit import AuditEntry, AuditHead, append, append_all, heads
from triage.storage.audit_verify import Finding, FindingCode, verify
from triage.storage.engine import Store
from triage.storage.errors import StorageError
from triage.storage.ledger import Ledger
from triage.storage.schema import audit, audit_heads
from triage.storage.transitions import OperationState

F = FindingCode
TENANT_KEY = digest_of("default")
ON_SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
ON_POSTGRESQL = pytest.mark.parametrize(
    "store_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


async def _write(store: Store, *names: str, tenant: str = "default") -> AuditHead:
    for name in names:
        async with store.write() as connection:
            head = await append(connection, _entry(name, tenant))
    return head


def _entry(name: str, tenant: str = "default") -> AuditEntry:
    return AuditEntry(
        tenant=tenant, kind="test.happened", subject=name, at=NOW, details={"n": name}
    )


async def _tamper(store: Store, statement: Update | Delete | TextClause) -> None:
    async with store.write() as connection:
        await connection.execute(statement)


def _edit(table: str, values: str, where: str = "true") -> TextClause:
    return text(f"UPDATE {table} SET {values} WHERE {where}")  # noqa: S608 - a test's own words


def _found(*pairs: tuple[int, FindingCode]) -> list[Finding]:
    return [Finding(tenant_key=TENANT_KEY, seq=seq, code=code) for seq, code in pairs]


async def test_a_chain_that_nobody_touched_holds(store: Store) -> None:
    """Entries of several tenants make chains of their own, without a gap."""
    first = await _write(store, "a", "b", "c")
    second = await _write(store, "a", tenant="other\x00\ud800")
    assert (3, 1) == (first.seq, second.seq)
    assert [first, second] == await heads(store)
    assert [] == await verify(store, [first, second])


async def test_entries_that_come_together_are_a_chain_like_any_other(store: Store) -> None:
    """Appended at once they follow on what is there, or begin the chain, and are followed on."""
    await _write(store, "a")
    for tenant in ("default", "new"):
        async with store.write() as connection:
            head = await append_all(connection, [_entry("b", tenant), _entry("c", tenant)])
        last = await _write(store, "d", tenant=tenant)
        assert head.seq + 1 == last.seq
    [default, new] = await heads(store)
    assert (4, 3) == (default.seq, new.seq)
    assert [] == await verify(store, [default, new])


@pytest.mark.parametrize("length", [9, 10, 11])
async def test_a_long_chain_is_read_to_its_end(
    store: Store, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """A chain of more entries than are read at once is checked as a whole."""
    monkeypatch.setattr("triage.storage.audit_verify._PAGE", 5)
    await _write(store, *(str(number) for number in range(length)))
    assert [] == await verify(store)
    await _tamper(store, delete(audit).where(audit.c.seq == length - 1))
    assert _found((length, F.GAP)) == await verify(store)


@pytest.mark.parametrize(
    "values",
    [
        {"body": canonical_json({"forged": True})},
        {"subject": "x"},
        {"kind": "x"},
        {"at": NOW + timedelta(seconds=1)},
    ],
    ids=["body", "subject", "kind", "time"],
)
async def test_an_edited_entry_is_found(store: Store, values: dict[str, object]) -> None:
    """Whatever column of an entry is changed, it no longer fits its hash."""
    await _write(store, "a", "b", "c")
    await _tamper(store, update(audit).where(audit.c.seq == 2).values(**values))
    assert _found((2, F.EDITED)) == await verify(store)


async def test_an_entry_that_was_hashed_anew_breaks_the_link(store: Store) -> None:
    """A forger who also computes the entry's own hash is caught by the next entry."""
    await _write(store, "a", "b", "c")
    async with store.read() as connection:
        query = select(audit.c.body).where(audit.c.seq == 2)
        body = json.loads((await connection.execute(query)).scalar_one())
    forged = canonical_json(body | {"details": {"n": "forged"}})
    values = {"body": forged, "hash": digest_of_bytes(forged)}
    await _tamper(store, update(audit).where(audit.c.seq == 2).values(**values))
    assert _found((3, F.BROKEN_LINK)) == await verify(store)


@pytest.mark.parametrize("body", [b"[]", b"not json", b'{"seq":2}'])
async def test_an_entry_of_any_shape_is_only_a_finding(store: Store, body: bytes) -> None:
    """A body that is no entry at all is reported, not an error."""
    await _write(store, "a", "b")
    values = {"body": body, "hash": digest_of_bytes(body)}
    await _tamper(store, update(audit).where(audit.c.seq == 2).values(**values))
    assert _found((2, F.EDITED), (2, F.HEAD_MISMATCH)) == await verify(store)


_EDITS_OF_ENTRIES = (
    "body = 'text'",
    "at = 'nonsense'",
    "at = 5",
    "kind = x'ff'",
    "kind = CAST(x'ff' AS TEXT)",
    "prev_hash = x'00'",
    "key_id = x'00'",
    "seq = 'abc'",
    "seq = 2.5",
    "seq = x'02'",
)


@ON_SQLITE
@pytest.mark.parametrize("edit", _EDITS_OF_ENTRIES)
async def test_a_value_that_its_column_does_not_allow_is_a_finding(store: Store, edit: str) -> None:
    """Whatever somebody writes into an entry on SQLite, the entry is named as edited."""
    await _write(store, "a", "b", "c")
    await _tamper(store, _edit("audit", edit, "seq = 2"))
    assert Finding(tenant_key=TENANT_KEY, seq=2, code=F.EDITED) in await verify(store)
    assert 3 == (await heads(store))[0].seq


@ON_SQLITE
@pytest.mark.parametrize("edit", ["x'ff00'", "CAST(x'ff' AS TEXT)", "'another'"])
async def test_an_entry_under_a_strange_key_is_a_finding(store: Store, edit: str) -> None:
    """An entry that was moved to a chain with a key of any type is missing from its own."""
    await _write(store, "a", "b", "c")
    await _tamper(store, _edit("audit", f"tenant_key = {edit}", "seq = 2"))
    found = await verify(store)
    assert {(3, F.GAP)} == {(f.seq, f.code) for f in found if f.tenant_key == TENANT_KEY}
    assert {F.GAP, F.EDITED, F.HEAD_MISMATCH} == {
        f.code for f in found if f.tenant_key != TENANT_KEY
    }


@ON_SQLITE
@pytest.mark.parametrize(
    "edit", ["updated_at = 'zz'", "tenant = x'ff00'", "seq = 'abc'", "hash = x'00'"]
)
async def test_a_head_that_cannot_be_read_is_a_finding(store: Store, edit: str) -> None:
    """A head of any content is reported, and nobody is given it to keep elsewhere."""
    await _write(store, "a", "b")
    await _tamper(store, _edit("audit_heads", edit))
    assert _found((2, F.HEAD_MISMATCH)) == await verify(store)
    assert [] == await heads(store, skip_unreadable=True)
    with pytest.raises(StorageError, match="cannot be read"):
        await heads(store)


async def test_a_head_of_another_tenant_is_a_finding(store: Store) -> None:
    """A head has to name the tenant whose chain it ends."""
    await _write(store, "a")
    await _tamper(store, update(audit_heads).values(tenant="another"))
    assert _found((1, F.HEAD_MISMATCH)) == await verify(store)


@ON_POSTGRESQL
@pytest.mark.parametrize("moment", ["infinity", "-infinity", "2030-01-01 12:00:00+00 BC"])
async def test_a_time_that_python_does_not_have_is_a_finding(store: Store, moment: str) -> None:
    """PostgreSQL keeps times that no program here can read; they are findings, too."""
    await _write(store, "a", "b", "c")
    await _tamper(store, _edit("audit", f"at = '{moment}'", "seq = 2"))
    await _tamper(store, _edit("audit_heads", f"updated_at = '{moment}'"))
    assert _found((2, F.EDITED), (3, F.HEAD_MISMATCH)) == await verify(store)


async def test_an_entry_taken_out_of_the_middle_is_found(store: Store) -> None:
    """Sequence numbers have no gaps."""
    await _write(store, "a", "b", "c")
    await _tamper(store, delete(audit).where(audit.c.seq == 2))
    assert _found((3, F.GAP)) == await verify(store)


async def test_a_tail_that_was_cut_off_is_found(store: Store) -> None:
    """The chain's own head shows it; if that was adjusted too, the head kept elsewhere does."""
    kept = await _write(store, "a", "b", "c")
    await _tamper(store, delete(audit).where(audit.c.seq == 3))
    assert _found((2, F.HEAD_MISMATCH)) == await verify(store)
    async with store.read() as connection:
        query = select(audit.c.hash).where(audit.c.seq == 2)
        hash_ = (await connection.execute(query)).scalar_one()
    await _tamper(store, update(audit_heads).values(seq=2, hash=hash_))
    assert [] == await verify(store)
    assert _found((2, F.TRUNCATED)) == await verify(store, [kept])


async def test_a_deleted_chain_is_found(store: Store) -> None:
    """With everything deleted, only the head kept elsewhere knows that there was a chain."""
    kept = await _write(store, "a", "b")
    await _tamper(store, delete(audit))
    await _tamper(store, delete(audit_heads))
    assert [] == await verify(store)
    assert _found((0, F.TRUNCATED)) == await verify(store, [kept])


async def test_a_chain_that_was_written_anew_is_found(store: Store) -> None:
    """A consistent forgery has another hash where the head kept elsewhere points."""
    kept = await _write(store, "a", "b")
    await _tamper(store, delete(audit))
    await _tamper(store, delete(audit_heads))
    await _write(store, "a", "forged", "c")
    assert [] == await verify(store)
    assert _found((2, F.REWRITTEN)) == await verify(store, [kept])


async def test_a_chain_without_its_head_is_found(store: Store) -> None:
    """Entries whose head was deleted do not hold, and nothing can be appended over them."""
    await _write(store, "a")
    await _tamper(store, delete(audit_heads))
    assert _found((1, F.HEAD_MISMATCH)) == await verify(store)


async def test_every_move_is_told(store: Store) -> None:
    """The chain holds one entry for the approval and one for each move, in their order."""
    ledger = Ledger(store)
    epoch = await dispatched(ledger, operation())
    await ledger.settle("op_1", epoch, OperationState.APPLIED, RECEIPT)
    async with store.read() as connection:
        rows = (await connection.execute(select(audit).order_by(audit.c.seq))).mappings().all()
    assert [
        "approval.recorded",
        "operation.reserved",
        "operation.dispatched",
        "operation.applied",
    ] == [row["kind"] for row in rows]
    assert {"op_1"} == {row["subject"] for row in rows}
    details = json.loads(rows[-1]["body"])["details"]
    assert (1, 3, digest_of_bytes(RECEIPT)) == (
        details["epoch"],
        details["version"],
        details["receipt_digest"],
    )
    assert "maintainer" == json.loads(rows[0]["body"])["details"]["approver"]


async def test_a_rolled_back_entry_leaves_no_gap(store: Store) -> None:
    """An entry whose transaction did not commit is as if it had never been."""

    async def write_and_fail() -> None:
        async with store.write() as connection:
            entry = AuditEntry(tenant="default", kind="k", subject="lost", at=NOW)
            await append(connection, entry)
            raise RuntimeError

    await _write(store, "a")
    with pytest.raises(RuntimeError):
        await write_and_fail()
    assert 2 == (await _write(store, "b")).seq
    assert [] == await verify(store)
