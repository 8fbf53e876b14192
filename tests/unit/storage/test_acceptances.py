"""Which rules were accepted is one answer for every worker, and stands in the audit trail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from sqlalchemy import select, text, update

from triage.policy.rules import BUILTIN_RULES, Rules
from triage.policy.widening import Widening, Widens
from triage.storage.acceptances import (
    NOBODY_YET,
    Acceptance,
    AcceptanceOvertakenError,
    Acceptances,
)
from triage.storage.audit import heads
from triage.storage.audit_verify import verify
from triage.storage.documents import SHARED, Document, DocumentKind, DocumentStore
from triage.storage.engine import Store
from triage.storage.errors import StorageError, StorageMisconfigured
from triage.storage.migrate import upgrade
from triage.storage.schema import acceptances, audit, documents

ODD = "ann\x00\ud800"
WIDENS = (
    Widening(Widens.LABEL, "docs", "none", "descriptive"),
    Widening(Widens.LABEL, "ui", "none", "descriptive"),
    Widening(Widens.MODE, "", "suggest", "approve"),
)


def _rules(name: str) -> Rules:
    return BUILTIN_RULES.model_copy(update={"name": name})


async def _accept(store: Store, name: str, by: str = "ann") -> Acceptance:
    known = await Acceptances(store).current()
    return await Acceptances(store).accept(_rules(name), replaces=known, widens=WIDENS, by=by)


async def _count(store: Store) -> int:
    async with store.read() as connection:
        return len((await connection.execute(select(acceptances))).all())


async def test_at_first_the_built_in_rules_count_as_accepted(store: Store) -> None:
    """On a new database nobody has to accept what the program itself brings."""
    assert NOBODY_YET == await Acceptances(store).current()
    assert (BUILTIN_RULES, None) == (NOBODY_YET.rules, NOBODY_YET.acceptance)


async def test_the_newest_acceptance_counts(store: Store) -> None:
    """Rules come back as they were accepted, with who did so, when, and instead of which."""
    first = await _accept(store, "first", ODD)
    second = await _accept(store, "second")
    current = await Acceptances(store).current()
    assert (_rules("second"), second.digest, second) == (
        current.rules,
        current.digest,
        current.acceptance,
    )
    assert (BUILTIN_RULES.digest(), first.digest) == (first.replaces, second.replaces)
    assert (ODD, "ann", True) == (first.by, second.by, first.accepted_at <= second.accepted_at)


async def test_what_was_accepted_earlier_can_be_accepted_again(store: Store) -> None:
    """Going back, to the built-in rules too, is an acceptance like any other."""
    await _accept(store, "first")
    await _accept(store, "builtin")
    current = await Acceptances(store).current()
    assert (BUILTIN_RULES, 2) == (current.rules, await _count(store))
    assert current.acceptance is not None


async def test_what_is_known_is_not_loaded_again(store: Store) -> None:
    """Asking before each run costs one row as long as nothing was accepted."""
    await _accept(store, "first")
    known = await Acceptances(store).current()
    async with store.write() as connection:
        await connection.execute(update(documents).values(body=b"changed"))
    assert known is await Acceptances(store).current(known)


async def test_both_sides_of_an_acceptance_are_kept(store: Store) -> None:
    """The bodies of what was accepted and of what it replaced are documents that do not expire."""
    accepted = await _accept(store, "first")
    for digest in (accepted.digest, accepted.replaces):
        found = await DocumentStore(store).get(SHARED, DocumentKind.POLICY, digest)
        assert isinstance(found, Document)
        assert found.expires_at is None


async def test_an_acceptance_that_was_overtaken_is_refused(store: Store) -> None:
    """Whoever compared with rules that are no longer the accepted ones accepts nothing."""
    await _accept(store, "first")
    with pytest.raises(AcceptanceOvertakenError):
        await Acceptances(store).accept(
            _rules("late"), replaces=NOBODY_YET, widens=WIDENS, by="bob"
        )
    assert (_rules("first"), 1) == ((await Acceptances(store).current()).rules, await _count(store))


async def test_of_two_at_once_one_accepts(store: Store) -> None:
    """Two people who saw the same rules cannot both replace them."""
    outcomes: Sequence[object] = await asyncio.gather(
        *(
            Acceptances(store).accept(_rules(name), replaces=NOBODY_YET, widens=WIDENS, by=name)
            for name in ("ann", "bob")
        ),
        return_exceptions=True,
    )
    kinds = sorted(type(outcome).__name__ for outcome in outcomes)
    assert ["Acceptance", "AcceptanceOvertakenError"] == kinds
    assert 1 == await _count(store)


async def test_an_acceptance_is_in_the_audit_trail(store: Store) -> None:
    """Who accepted which rules, and how much they widen, stands in a chain that holds."""
    accepted = await _accept(store, "first")
    async with store.read() as connection:
        row = (await connection.execute(select(audit))).mappings().one()
    details = {
        "by": "ann",
        "replaces": BUILTIN_RULES.digest(),
        "widens": {"label": 2, "mode": 1},
    }
    assert ("rules.accepted", accepted.digest, details) == (
        row["kind"],
        row["subject"],
        json.loads(row["body"])["details"],
    )
    assert [] == await verify(store, await heads(store))


async def test_an_acceptance_that_cannot_be_audited_is_not_made(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its entry in the trail nothing is accepted."""

    async def broken(*_: object) -> None:
        raise StorageError("no room")

    monkeypatch.setattr("triage.storage.acceptances.append", broken)
    with pytest.raises(StorageError):
        await _accept(store, "first")
    assert NOBODY_YET == await Acceptances(store).current()


@pytest.mark.parametrize("statement", ["DELETE FROM documents", "DROP TABLE acceptances"])
async def test_what_cannot_be_read_is_an_error(empty_url: str, statement: str) -> None:
    """Not knowing what was accepted is never answered with the built-in rules."""
    await upgrade(empty_url)
    store = await Store.open(empty_url)
    await _accept(store, "first")
    async with store.write() as connection:
        await connection.execute(text(statement))
    with pytest.raises(StorageMisconfigured):
        await Acceptances(store).current()
    await store.close()


async def test_rules_of_another_version_are_an_error(store: Store) -> None:
    """Accepted rules that this version does not understand are never taken for less."""
    accepted = await _accept(store, "first")
    body = b'{"name":"newer"}'
    digest = await DocumentStore(store).put(SHARED, DocumentKind.POLICY, body)
    async with store.write() as connection:
        await connection.execute(
            update(acceptances).where(acceptances.c.digest == accepted.digest).values(digest=digest)
        )
    with pytest.raises(StorageMisconfigured, match="not of this version"):
        await Acceptances(store).current()
