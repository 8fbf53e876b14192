"""The schema is what the migrations make of it, and no other schema is worked with."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from triage.contracts.trail import START
from triage.storage.engine import Store
from triage.storage.errors import StorageMisconfigured
from triage.storage.evidence import EvidenceStore
from triage.storage.migrate import alembic_config, check_schema, upgrade
from triage.storage.schema import REVISIONS, evidence, metadata


def _differences(connection: Connection) -> list[Any]:
    context = MigrationContext.configure(
        connection, opts={"compare_type": True, "compare_server_default": True}
    )
    return list(compare_metadata(context, metadata))


def _checks(connection: Connection) -> dict[str, set[tuple[str | None, str]]]:
    inspector = inspect(connection)
    return {
        table: {
            (check["name"], check["sqltext"]) for check in inspector.get_check_constraints(table)
        }
        for table in metadata.tables
    }


async def test_migrations_and_metadata_agree(store: Store) -> None:
    """A migrated database has exactly the tables, columns, keys and indexes of the metadata."""
    async with store.read() as connection:
        assert [] == await connection.run_sync(_differences)


async def test_migrations_and_metadata_check_the_same(empty_url: str) -> None:
    """A migrated database has exactly the CHECK constraints of the metadata."""
    store = await Store.open(empty_url)
    async with store.write() as connection:
        await connection.run_sync(metadata.create_all)
        expected = await connection.run_sync(_checks)
        await connection.run_sync(metadata.drop_all)
    await upgrade(empty_url)
    async with store.read() as connection:
        assert expected == await connection.run_sync(_checks)
    await store.close()


async def test_the_listed_revisions_are_the_migrations(store: Store) -> None:
    """The revisions that this program knows are those that it carries, in their order."""

    def listed(connection: Connection) -> tuple[str, ...]:
        script = ScriptDirectory.from_config(alembic_config(connection))
        return tuple(revision.revision for revision in script.walk_revisions())[::-1]

    async with store.read() as connection:
        assert REVISIONS == await connection.run_sync(listed)


async def test_upgrading_again_changes_nothing(store_url: str) -> None:
    """Upgrading a database that is up to date leaves it as it is."""
    await upgrade(store_url)
    store = await Store.open(store_url)
    await check_schema(store)
    await store.close()


async def test_processes_may_upgrade_at_once(empty_url: str) -> None:
    """Processes that start together on an empty database all end with one good schema."""
    script = "import asyncio, sys; from triage.storage.migrate import upgrade; "
    script += "asyncio.run(upgrade(sys.argv[1]))"
    started = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", script, empty_url)
        for _ in range(2)
    ]
    assert [0, 0] == [await process.wait() for process in started]
    store = await Store.open(empty_url)
    await check_schema(store)
    await store.close()


async def test_a_failed_upgrade_leaves_nothing(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade that breaks half-way leaves no table behind, and can be run again."""
    from alembic import op  # noqa: PLC0415 - patched for this test alone

    def broken(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr(op, "create_index", broken)
        with pytest.raises(RuntimeError):
            await upgrade(empty_url)
    store = await Store.open(empty_url)
    async with store.read() as connection:
        assert [] == await connection.run_sync(lambda c: inspect(c).get_table_names())
    await upgrade(empty_url)
    await check_schema(store)
    await store.close()


async def test_evidence_from_before_trails_is_kept(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that began with an older release finds all that it has read, as one without a trail."""
    with monkeypatch.context() as patched:
        patched.setattr("triage.storage.migrate.REVISIONS", REVISIONS[: REVISIONS.index("0007")])
        await upgrade(empty_url)
    store = await Store.open(empty_url)
    columns = [column.name for column in evidence.columns if column.name not in {"call", "after"}]
    values = {
        **dict.fromkeys(columns, "x"),
        "version": 3,
        "size_bytes": 1,
        "arguments": b"{}",
        "content": b"x",
        "expires_at": None,
        "purged_at": None,
    }
    names, places = ", ".join(columns), ", ".join(f":{name}" for name in columns)
    async with store.write() as connection:
        now = await store.now(connection)
        created = str(now) if store.is_sqlite else now
        insert = text(f"INSERT INTO evidence ({names}) VALUES ({places})")  # noqa: S608 - names of ours
        await connection.execute(insert, {**values, "created_at": created})
    await upgrade(empty_url)
    [row] = await EvidenceStore(store).load("x", before_version=9)
    assert ("", START, b"x", 3) == (row.call, row.after, row.content, row.version)
    await store.close()


async def test_an_empty_database_is_refused(empty_url: str) -> None:
    """A program does not start on a database without tables; it says that it needs an upgrade."""
    store = await Store.open(empty_url)
    with pytest.raises(StorageMisconfigured, match="no tables yet"):
        await check_schema(store)
    await store.close()


async def _pretend(store: Store, revision: str) -> None:
    async with store.write() as connection:
        await connection.execute(
            text("UPDATE alembic_version SET version_num = :r"), {"r": revision}
        )


async def test_a_newer_schema_is_refused(store: Store, store_url: str) -> None:
    """A program neither works with nor upgrades a schema that it has never heard of."""
    await _pretend(store, "9999")
    try:
        with pytest.raises(StorageMisconfigured, match="newer than this program"):
            await check_schema(store)
        with pytest.raises(StorageMisconfigured, match="newer than this program"):
            await upgrade(store_url)
    finally:
        await _pretend(store, REVISIONS[-1])


async def test_an_older_schema_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program does not work with a schema that it has yet to upgrade."""
    monkeypatch.setattr("triage.storage.version.REVISIONS", (*REVISIONS, "9999"))
    with pytest.raises(StorageMisconfigured, match="older than this program"):
        await check_schema(store)
