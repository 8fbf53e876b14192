"""`triage audit` says whether the trail holds, and gives what shows that its end was cut off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import delete, text, update

from tests.cli.conftest import Triage
from tests.cli.stored import in_store
from tests.unit.storage.samples import claim, operation
from triage.storage.audit import AuditEntry, append, heads
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.schema import audit, audit_heads
from triage.storage.switches import Switches

ODD = "te\x1b[31mnant"


async def _fill(store: Store) -> None:
    """Three entries of everybody's and one of a tenant with a wild name."""
    await Switches(store).stop("ann", "one")
    await Switches(store).allow("ann")
    async with store.write() as connection:
        now = await store.now(connection)
        for tenant in ("", ODD):
            await append(connection, AuditEntry(tenant=tenant, kind="test", subject="x", at=now))


async def _cut(store: Store) -> None:
    """Take the last entry of everybody's away, as somebody does who knows the tables."""
    last = "sha256:"
    async with store.write() as connection:
        await connection.execute(delete(audit).where(audit.c.seq == 3))
        found = await connection.execute(audit.select().where(audit.c.seq == 2))
        last = found.mappings().one()["hash"]
        await connection.execute(
            update(audit_heads).where(audit_heads.c.seq == 3).values(seq=2, hash=last)
        )


async def _edit(store: Store) -> None:
    async with store.write() as connection:
        await connection.execute(update(audit).where(audit.c.seq == 3).values(subject="forged"))


def test_a_trail_that_nobody_touched_holds(triage: Triage, tmp_path: Path) -> None:
    """The head that is printed is what the check takes, and with it nothing is left open."""
    in_store(tmp_path, _fill)
    head = triage("audit", "head")
    assert [("", 3), (ODD, 1)] == [(h["tenant"], h["seq"]) for h in head.json()]
    checked = triage("audit", "verify", "--head", "-", "--format", "json", stdin=head.out.encode())
    assert (0, "") == (checked.status, checked.err)
    assert {"holds": True, "chains": 2, "entries": 4, "findings": []} == checked.json()


def test_a_ledger_that_was_edited_fails_the_check(triage: Triage, tmp_path: Path) -> None:
    """A write that was moved by hand is named, with the entry that says where it stood."""
    in_store(tmp_path, _move_by_hand)
    answer = triage("audit", "verify", "--format", "json")
    [finding] = answer.json()["findings"]
    assert {
        "tenant": "default",
        "seq": 2,
        "code": "epoch_differs",
        "operation_key": "op_1",
    } == finding
    assert (1, True) == (answer.status, "the trail holds, and the database is not" in answer.err)


async def _move_by_hand(store: Store) -> None:
    await claim(Ledger(store), operation())
    async with store.write() as connection:
        await connection.execute(text("UPDATE operations SET epoch = 7"))


def test_a_switch_that_was_turned_by_hand_fails_the_check(triage: Triage, tmp_path: Path) -> None:
    """What the trail says of who may write is held against what is there, and is named."""
    in_store(tmp_path, _fill)
    in_store(tmp_path, _stop_by_hand)
    answer = triage("audit", "verify")
    assert (1, True) == (answer.status, "a stop switch is missing, or does not" in answer.out)


async def _stop_by_hand(store: Store) -> None:
    async with store.write() as connection:
        await connection.execute(text("UPDATE switches SET stopped = TRUE"))


def test_without_a_kept_head_the_open_question_is_named(triage: Triage, tmp_path: Path) -> None:
    """A check of the chain alone says what it cannot see."""
    in_store(tmp_path, _fill)
    answer = triage("audit", "verify")
    assert (0, "the audit trail holds (entries: 4, chains: 2)\n") == (answer.status, answer.out)
    assert "--head" in answer.err


def test_an_edited_entry_fails_the_check(triage: Triage, tmp_path: Path) -> None:
    """What is wrong is listed, and the status is 1."""
    in_store(tmp_path, _fill)
    in_store(tmp_path, _edit)
    answer = triage("audit", "verify", "--format", "json")
    assert 1 == answer.status
    found = answer.json()
    assert (False, [{"tenant": "", "seq": 3, "code": "edited"}]) == (
        found["holds"],
        found["findings"],
    )


def test_values_of_any_type_fail_the_check(triage: Triage, tmp_path: Path) -> None:
    """Entries and heads that cannot even be read are findings, and no head is given to keep."""

    async def spoil(store: Store) -> None:
        async with store.write() as connection:
            await connection.execute(text("UPDATE audit SET at = 'nonsense' WHERE seq = 3"))
            await connection.execute(text("UPDATE audit_heads SET tenant = x'ff00'"))

    in_store(tmp_path, _fill)
    in_store(tmp_path, spoil)
    answer = triage("audit", "verify", "--format", "json")
    assert 1 == answer.status
    assert {"edited", "head_mismatch"} == {found["code"] for found in answer.json()["findings"]}
    assert 1 == triage("audit", "verify").status
    head = triage("audit", "head")
    assert (1, "") == (head.status, head.out)


def test_a_cut_tail_shows_only_against_the_kept_head(triage: Triage, tmp_path: Path) -> None:
    """Whoever kept the head elsewhere sees that entries are gone; the chain itself still holds."""
    in_store(tmp_path, _fill)
    kept = tmp_path / "head.json"
    kept.write_text(triage("audit", "head").out)
    in_store(tmp_path, _cut)
    assert 0 == triage("audit", "verify").status
    answer = triage("audit", "verify", "--head", kept)
    assert 1 == answer.status
    assert "truncated" in answer.out
    assert answer.err.startswith("error: the audit trail does not hold")


def test_a_head_of_a_wild_tenant_cannot_drive_the_terminal(triage: Triage, tmp_path: Path) -> None:
    """Names are shown with what cannot be seen written out."""
    in_store(tmp_path, _fill)
    answer = triage("audit", "head", "--format", "text")
    assert (0, False, True) == (answer.status, "\x1b" in answer.out, r"\u{1b}" in answer.out)


def test_an_empty_trail(triage: Triage, tmp_path: Path) -> None:
    """Before anything happened there is no head, and the trail holds."""
    in_store(tmp_path, heads)
    assert [] == triage("audit", "head").json()
    assert 0 == triage("audit", "verify").status


GOOD = {"tenant": "default", "seq": 1, "hash": "sha256:" + "0" * 64}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        json.dumps([{**GOOD, "seq": 0}]),
        json.dumps([{**GOOD, "hash": "0" * 64}]),
        json.dumps([{**GOOD, "more": 1}]),
        json.dumps([GOOD, GOOD]),
    ],
    ids=["empty", "object", "no-entry", "no-digest", "more", "twice"],
)
def test_what_is_no_head_is_refused(triage: Triage, text: str) -> None:
    """A file that nobody printed with `audit head` ends with status 2, and nothing is checked."""
    answer = triage("audit", "verify", "--head", "-", stdin=text.encode())
    assert (2, "") == (answer.status, answer.out)
    assert answer.err.startswith("error: the head")
