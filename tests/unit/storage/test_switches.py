"""The switches stop writes for whom they say, and the trail says who turned them."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sqlalchemy import select, text

from triage.storage.audit import heads
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.errors import StorageError
from triage.storage.schema import audit
from triage.storage.switches import Switches

ODD = "t\x00\ud800"
TENANTS = (None, "default", ODD)


async def _stopped(store: Store) -> list[bool]:
    return [await Switches(store).writes_stopped(tenant) for tenant in TENANTS]


async def _entries(store: Store) -> list[tuple[str, str, str]]:
    async with store.read() as connection:
        rows = (await connection.execute(select(audit).order_by(audit.c.at))).mappings().all()
    told = [json.loads(row["body"])["details"] for row in rows]
    return [(row["kind"], said["by"], said["reason"]) for row, said in zip(rows, told, strict=True)]


async def test_nothing_is_stopped_at_first(store: Store) -> None:
    """On a new database everybody may write, and no switch is listed."""
    assert [False, False, False] == await _stopped(store)
    assert () == await Switches(store).list()


async def test_the_switch_of_everybody_stops_everybody(store: Store) -> None:
    """One switch stops all tenants at once, until it is turned back."""
    await Switches(store).stop("ann", "labels go to the wrong issues")
    assert [True, True, True] == await _stopped(store)
    await Switches(store).allow("bob")
    assert [False, False, False] == await _stopped(store)


async def test_a_tenant_s_switch_stops_that_tenant(store: Store) -> None:
    """A tenant's switch concerns no other tenant, whatever its name is made of."""
    await Switches(store).stop("ann", "abuse", tenant=ODD)
    assert [False, False, True] == await _stopped(store)


async def test_allowing_everybody_does_not_allow_a_stopped_tenant(store: Store) -> None:
    """Each switch is turned back by itself."""
    switches = Switches(store)
    await switches.stop("ann", "abuse", tenant="default")
    await switches.stop("ann", "upgrade")
    await switches.allow("ann")
    assert [False, True, False] == await _stopped(store)


async def test_a_switch_tells_who_turned_it_last_and_why(store: Store) -> None:
    """What was said last stands, cut to a bounded length, at the database's time."""
    store._offset = timedelta(days=400)
    switches = Switches(store)
    await switches.stop("bob", "first")
    turned = await switches.stop("ann" * 1000, "x" * 1000)
    await switches.allow("cat", tenant=ODD)
    everybody, tenant = await switches.list()
    assert turned == everybody
    assert (None, True, 500, 500) == (
        everybody.tenant,
        everybody.stopped,
        len(everybody.by),
        len(everybody.reason),
    )
    assert (ODD, False, "cat", "") == (tenant.tenant, tenant.stopped, tenant.by, tenant.reason)
    async with store.read() as connection:
        assert everybody.changed_at <= tenant.changed_at <= await store.now(connection)


async def test_each_turn_is_in_the_audit_trail(store: Store) -> None:
    """Who stopped writes, and who allowed them again, stands in a chain that holds."""
    switches = Switches(store)
    await switches.stop("ann", "upgrade")
    await switches.allow("bob")
    await switches.stop("cat", "abuse", tenant="default")
    expected = [
        ("writes.stopped", "ann", "upgrade"),
        ("writes.allowed", "bob", ""),
        ("writes.stopped", "cat", "abuse"),
    ]
    assert expected == sorted(await _entries(store), key=expected.index)
    assert [("", 2), ("default", 1)] == [(head.tenant, head.seq) for head in await heads(store)]
    assert [] == await verify(store, await heads(store))


async def test_a_turn_that_cannot_be_audited_is_not_made(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its entry in the trail a switch stays as it was."""

    async def broken(*_: object) -> None:
        raise StorageError("no room")

    await Switches(store).stop("ann", "upgrade")
    monkeypatch.setattr("triage.storage.switches.append", broken)
    with pytest.raises(StorageError):
        await Switches(store).allow("bob")
    assert await Switches(store).writes_stopped()


async def test_a_switch_that_cannot_be_read_is_an_error(store: Store) -> None:
    """Not knowing is never answered with "allowed"."""
    async with store.write() as connection:
        await connection.execute(text("ALTER TABLE switches RENAME TO mislaid"))
    try:
        with pytest.raises(StorageError):
            await Switches(store).writes_stopped("default")
    finally:
        async with store.write() as connection:
            await connection.execute(text("ALTER TABLE mislaid RENAME TO switches"))
