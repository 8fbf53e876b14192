"""Transactions mean the same on both databases, and faults are told in words of ours."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import func, insert, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from tests.clock import PATIENCE_SECONDS
from tests.unit.storage.samples import NOW
from triage.storage.engine import Store
from triage.storage.errors import (
    StorageError,
    StorageMisconfigured,
    StorageRejected,
    StorageUnavailable,
    translate,
)
from triage.storage.schema import audit_heads, operation_tombstones

SECRET = "s3cret-pass"


def _head(key: str) -> dict[str, object]:
    return {"tenant_key": key, "tenant": key, "seq": 0, "hash": "", "updated_at": NOW}


async def _keys(store: Store) -> list[str]:
    async with store.read() as connection:
        return sorted((await connection.scalars(select(audit_heads.c.tenant_key))).all())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "no url at all",
        f"mysql://user:{SECRET}@host/name",
        f"postgresql+asyncpg://user:{SECRET}@host/name",
        f"postgresql+psycopg://user:{SECRET}@host:no-port/name",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite+aiosqlite:///:memory:",
        "sqlite://host/path.db",
    ],
)
async def test_a_bad_url_is_refused_with_help(url: str) -> None:
    """A URL that names no supported database is answered with one that would, and never quoted."""
    with pytest.raises(StorageMisconfigured, match="sqlite:///path") as caught:
        await Store.open(url)
    assert SECRET not in f"{caught.value!r}{caught.value.__cause__!r}{caught.value.__context__!s}"


async def test_an_unreachable_server_is_unavailable_and_its_password_unsaid() -> None:
    """No answer may become an answer later; the message names the place without the password."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        url = (
            f"postgresql+psycopg://user:{SECRET}@127.0.0.1:{port}/triage?application_name={SECRET}"
        )
        with pytest.raises(StorageUnavailable) as caught:
            await Store.open(url)
    assert f"PostgreSQL 127.0.0.1:{port}/triage: not reachable" in str(caught.value)
    assert SECRET not in f"{caught.value!r}"
    assert caught.value.__cause__ is None


async def test_a_server_that_says_nothing_is_given_up() -> None:
    """A server that takes the connection and never answers costs only the given time."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        begin = time.monotonic()
        with pytest.raises(StorageUnavailable, match="took too long"):
            await Store.open(
                f"postgresql+psycopg://user@127.0.0.1:{port}/triage", transaction_seconds=0.3
            )
    assert time.monotonic() - begin < PATIENCE_SECONDS


async def test_a_database_that_does_not_exist_is_a_mistake(postgres_server: str) -> None:
    """A wrong database name will not get better by waiting."""
    with pytest.raises(StorageMisconfigured, match="does not exist: create it"):
        await Store.open(postgres_server.replace("@/postgres?", "@/nowhere?"))


async def test_a_user_that_does_not_exist_is_a_mistake(postgres_server: str) -> None:
    """A wrong user or password will not get better by waiting."""
    with pytest.raises(StorageMisconfigured, match="refused the user or password"):
        await Store.open(postgres_server.replace("//postgres@", f"//nobody:{SECRET}@"))


async def test_a_folder_that_cannot_be_made_is_a_mistake(tmp_path: Path) -> None:
    """A path through a file is no place for a database."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageMisconfigured, match="cannot be made or written"):
        await Store.open(f"sqlite:///{tmp_path}/file/triage.db")


@pytest.mark.parametrize("content", [b"x" * 4096, b"SQLite format 3\0" + b"\xff" * 8176])
async def test_a_file_that_is_no_database_is_a_mistake(tmp_path: Path, content: bytes) -> None:
    """A foreign or damaged file is left as it is, and named."""
    path = tmp_path / "triage.db"
    path.write_bytes(content)
    with pytest.raises(StorageMisconfigured, match="move it away"):
        await Store.open(f"sqlite:///{path}")
    assert content == path.read_bytes()


async def test_a_sqlite_store_is_private_and_durable(tmp_path: Path) -> None:
    """The file, its side files and a new folder are their owner's alone; commits reach the disk."""
    folder = tmp_path / "new"
    store = await Store.open(f"sqlite:///{folder}/triage.db")
    async with store.write() as connection:
        await connection.execute(text("CREATE TABLE t (a)"))
        pragmas = [
            (await connection.execute(text(f"PRAGMA {name}"))).scalar_one()
            for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        ]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    await store.close()
    assert ["wal", 2, 30000, 1] == pragmas
    assert {"triage.db": 0o600, "triage.db-wal": 0o600, "triage.db-shm": 0o600} == modes
    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)


async def test_a_sqlite_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    """A file made by something else becomes private when it is opened."""
    path = tmp_path / "triage.db"
    path.touch(mode=0o644)
    await (await Store.open(f"sqlite:///{path}")).close()
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)


async def test_what_is_no_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """A pipe or a device under the database's name is a mistake, and its rights stay."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o666)
    with pytest.raises(StorageMisconfigured, match="is no regular file"):
        await Store.open(f"sqlite:///{pipe}")
    assert 0o666 == stat.S_IMODE(pipe.stat().st_mode)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_a_full_disk_is_unavailable_and_keeps_nothing(store: Store) -> None:
    """A write that does not fit is undone as a whole, and smaller ones still work."""

    async def write_too_much() -> None:
        async with store.write() as connection:
            pages = (await connection.execute(text("PRAGMA page_count"))).scalar_one()
            await connection.execute(text(f"PRAGMA max_page_count = {pages + 2}"))
            await connection.execute(insert(audit_heads).values(_head("small")))
            await connection.execute(insert(audit_heads).values(_head("x" * 100_000)))

    with pytest.raises(StorageUnavailable, match="disk is full: make room"):
        await write_too_much()
    assert [] == await _keys(store)
    async with store.write() as connection:
        await connection.execute(insert(audit_heads).values(_head("small")))
    assert ["small"] == await _keys(store)


async def test_a_write_is_kept_whole_or_not_at_all(store: Store) -> None:
    """An error inside the transaction passes through, and undoes everything."""

    async def write_and_fail() -> None:
        async with store.write() as connection:
            await connection.execute(insert(audit_heads).values(_head("lost")))
            raise KeyError

    with pytest.raises(KeyError):
        await write_and_fail()
    async with store.write() as connection:
        await connection.execute(insert(audit_heads).values(_head("kept")))
    assert ["kept"] == await _keys(store)


async def test_a_refused_row_names_its_constraint_and_nothing_else(store: Store) -> None:
    """What was in the row stays out of the error."""
    row = {"operation_key": SECRET, "digest": "d", "state": SECRET, "purged_at": NOW}
    with pytest.raises(StorageRejected) as caught:
        async with store.write() as connection:
            await connection.execute(insert(operation_tombstones).values(row))
    assert "ck_operation_tombstones_state_known" == caught.value.constraint
    assert SECRET not in f"{caught.value!r}{caught.value.__cause__!r}"


async def test_read_then_write_needs_no_second_try(store: Store, store_url: str) -> None:
    """Two transactions that read before they write both succeed, one after the other."""
    other = await Store.open(store_url)

    async def count_up(one: Store) -> None:
        for _ in range(20):
            async with one.write() as connection:
                query = select(audit_heads.c.seq).where(audit_heads.c.tenant_key == "k")
                seq = (await connection.execute(query.with_for_update())).scalar_one()
                await connection.execute(audit_heads.update().values(seq=seq + 1))

    async with store.write() as connection:
        await connection.execute(insert(audit_heads).values(_head("k")))
    await asyncio.gather(count_up(store), count_up(other), count_up(store))
    await other.close()
    async with store.read() as connection:
        assert 60 == (await connection.execute(select(audit_heads.c.seq))).scalar_one()


async def test_a_snapshot_sees_one_moment(store: Store) -> None:
    """Reads that belong together do not see what is committed between them; single reads do."""
    count = select(func.count()).select_from(audit_heads)
    async with store.snapshot() as looking, store.read() as reading:
        seen = [(await looking.execute(count)).scalar_one()]
        async with store.write() as connection:
            await connection.execute(insert(audit_heads).values(_head("k")))
        seen.append((await looking.execute(count)).scalar_one())
        fresh = (await reading.execute(count)).scalar_one()
    assert ([0, 0], 1) == (seen, fresh)


async def test_a_transaction_ends_in_time(store: Store, store_url: str) -> None:
    """Somebody who sits on a lock costs others their own limit, and they can try again."""
    hasty = await Store.open(store_url, transaction_seconds=0.5, opening_seconds=40)
    async with store.write() as connection:
        await connection.execute(insert(audit_heads).values(_head("k")))
    async with store.write() as holder:
        await holder.execute(audit_heads.update().values(seq=1))
        with pytest.raises(StorageUnavailable, match=r"took too long|stayed locked"):
            async with hasty.write() as connection:
                await connection.execute(audit_heads.update().values(seq=2))
    hasty._transaction_seconds = 40
    async with hasty.write() as connection:
        await connection.execute(audit_heads.update().values(seq=3))
    await hasty.close()
    async with store.read() as connection:
        assert 3 == (await connection.execute(select(audit_heads.c.seq))).scalar_one()


async def test_the_callers_own_timeout_stays_the_callers(store: Store) -> None:
    """A TimeoutError that the body raises is not taken for the store's."""
    with pytest.raises(TimeoutError, match="mine"):
        async with store.write():
            raise TimeoutError("mine")


async def test_a_cancelled_transaction_leaves_the_store_usable(store: Store) -> None:
    """Whenever an activity is cancelled, its transaction is whole or gone, and nobody is locked."""

    async def write(key: str) -> None:
        async with store.write() as connection:
            await connection.execute(insert(audit_heads).values(_head(f"{key}-a")))
            await connection.execute(insert(audit_heads).values(_head(f"{key}-b")))

    for number in range(40):
        task = asyncio.create_task(write(f"{number:02}"))
        for _ in range(number):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await write("last")
    keys = await _keys(store)
    assert "last-b" in keys
    assert {key[:-2] for key in keys if key.endswith("a")} == {
        key[:-2] for key in keys if key.endswith("b")
    }


@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
async def test_a_cut_connection_is_unavailable_and_the_next_one_works(store: Store) -> None:
    """A server that drops a connection costs one transaction."""

    async def lose_the_connection() -> None:
        async with store.write() as connection:
            await connection.execute(insert(audit_heads).values(_head("lost")))
            pid = (await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one()
            async with store.write() as killer:
                await killer.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
            await connection.execute(select(1))

    with pytest.raises(StorageUnavailable, match=r"starting or stopping|not reachable"):
        await lose_the_connection()
    async with store.write() as connection:
        await connection.execute(insert(audit_heads).values(_head("kept")))
    assert ["kept"] == await _keys(store)


async def test_the_databases_time_is_an_instant(store: Store, store_url: str) -> None:
    """Time comes from the database, aware, in UTC, and moves on inside a transaction."""
    async with store.write() as connection:
        first = await store.now(connection)
        await asyncio.sleep(0.002)  # time has to pass, and that is all
        second = await store.now(connection)
    assert timedelta(0) == first.utcoffset()
    assert first < second
    assert timedelta(minutes=1) > abs(datetime.now(UTC) - first)
    shifted = await Store.open(store_url, clock_offset=timedelta(hours=72))
    async with shifted.read() as connection:
        assert timedelta(hours=71) < await shifted.now(connection) - second
    await shifted.close()


@pytest.mark.parametrize("state", ["53100", "53300", "57P03", "57014", "55P03", "40001", "25006"])
def test_what_may_pass_on_postgresql_is_unavailable(state: str) -> None:
    """A full disk, a restart, a lock or a standby may be over at the next try."""
    error = _wrapped(psycopg.errors.lookup(state)(SECRET))
    assert StorageUnavailable is type(error)
    assert f"({state})" in str(error)


@pytest.mark.parametrize("state", ["28P01", "28000", "3D000", "42501", "42P01", "XX001"])
def test_what_stays_on_postgresql_is_misconfigured(state: str) -> None:
    """A wrong password, missing rights or tables, or damage need a person."""
    assert StorageMisconfigured is type(_wrapped(psycopg.errors.lookup(state)(SECRET)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SQLITE_FULL", StorageUnavailable),
        ("SQLITE_BUSY", StorageUnavailable),
        ("SQLITE_BUSY_SNAPSHOT", StorageUnavailable),
        ("SQLITE_PROTOCOL", StorageUnavailable),
        ("SQLITE_IOERR_WRITE", StorageUnavailable),
        ("SQLITE_READONLY", StorageMisconfigured),
        ("SQLITE_CANTOPEN", StorageMisconfigured),
        ("SQLITE_CORRUPT", StorageMisconfigured),
        ("SQLITE_NOTADB", StorageMisconfigured),
        ("SQLITE_ERROR", StorageMisconfigured),
        ("", StorageUnavailable),
    ],
)
def test_sqlites_faults_are_told_apart(name: str, expected: type[StorageError]) -> None:
    """Each of SQLite's faults is one that may pass or one that needs a person."""
    cause = sqlite3.OperationalError(SECRET)
    cause.sqlite_errorname = name
    assert expected is type(_wrapped(cause))


def _wrapped(cause: Exception) -> StorageError:
    error = translate(DBAPIError.instance("SELECT", {"p": SECRET}, cause, Exception), "the store")
    assert SECRET not in str(error)
    return error


def test_a_refused_row_without_a_name_is_still_refused() -> None:
    """A driver that names no constraint does not hide that the row was refused."""
    error = translate(IntegrityError("INSERT", {}, sqlite3.IntegrityError(SECRET)), "the store")
    assert (StorageRejected, "") == (type(error), getattr(error, "constraint", None))
    assert SECRET not in str(error)
