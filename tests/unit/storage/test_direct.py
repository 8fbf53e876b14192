"""SQLite without a thread for each statement: whoever waits holds up nobody else."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import QueuePool, text

from tests.clock import PATIENCE_SECONDS
from triage.storage.direct import CONNECTIONS, DirectEngine
from triage.storage.engine import Store
from triage.storage.errors import StorageUnavailable
from triage.storage.sqlite import turn_on_wal


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store with one table of two columns."""
    opened = await Store.open(f"sqlite:///{tmp_path / 'triage.db'}")
    async with opened.write() as connection:
        await connection.execute(text("CREATE TABLE notes (name TEXT PRIMARY KEY)"))
    yield opened
    await opened.close()


async def _names(store: Store) -> list[str]:
    async with store.read() as connection:
        return list(await connection.scalars(text("SELECT name FROM notes ORDER BY name")))


async def test_readers_beyond_the_connections_get_their_turn(store: Store) -> None:
    """More tasks than connections wait for each other, and none of them stops the event loop."""
    enough = asyncio.Event()

    async def read(position: int) -> int:
        async with store.read() as connection:
            if position < CONNECTIONS:
                await enough.wait()
            found: int = await connection.scalar(text("SELECT 7"))
            return found

    tasks = [asyncio.create_task(read(position)) for position in range(2 * CONNECTIONS)]
    await asyncio.sleep(0)
    enough.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert [7] * len(tasks) == await asyncio.gather(*tasks)


async def test_a_writer_that_waits_for_another_process_holds_up_nobody(store: Store) -> None:
    """While the file's lock is somebody else's, readers and the event loop go on."""
    with closing(sqlite3.connect(store.address.path or "", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(_write(store, "ours"))
        for _ in range(20):
            assert [] == await _names(store)
            await asyncio.sleep(0.005)
        assert not waiting.done()
        other.execute("COMMIT")
    await waiting
    assert ["ours"] == await _names(store)


async def test_an_opening_that_waits_for_another_process_holds_up_nobody(tmp_path: Path) -> None:
    """A file that is locked as a whole is waited for in a thread, from the first connection on."""
    path = tmp_path / "locked.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE notes (name TEXT PRIMARY KEY)")
        other.execute("BEGIN EXCLUSIVE")
        opening = asyncio.create_task(Store.open(f"sqlite:///{path}"))
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert not opening.done()
        other.execute("COMMIT")
    opened = await opening
    assert [] == await _names(opened)
    await opened.close()


async def test_an_opening_that_is_cancelled_leaves_no_connection_behind(store: Store) -> None:
    """What a thread opens for a task that is gone goes back, and others can use it."""
    engine = cast("DirectEngine", store._engine).sync_engine
    engine.dispose()
    reading = asyncio.create_task(_names(store))
    await asyncio.sleep(0)
    reading.cancel()
    with suppress(asyncio.CancelledError):
        await reading
    assert reading.cancelled()
    assert 0 == cast("QueuePool", engine.pool).checkedout()
    assert [] == await _names(store)


async def test_threads_that_others_wait_in_hold_up_nothing(store: Store) -> None:
    """A name server that does not answer takes all threads of the loop, and a commit needs none."""
    over = threading.Event()
    loop = asyncio.get_running_loop()
    hung = [loop.run_in_executor(None, over.wait) for _ in range(64)]
    # A wait for a thread cannot be cancelled, so a failing test would never end.
    at_last = loop.call_later(2 * PATIENCE_SECONDS, over.set)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await _write(store, "ours")
            assert ["ours"] == await _names(store)
    finally:
        at_last.cancel()
        over.set()
        await asyncio.gather(*hung)


async def test_the_library_is_asked_to_tell_nothing(store: Store) -> None:
    """Where anybody listens to a connection's statements, each of them pays for it."""
    engine: Any = cast("DirectEngine", store._engine).sync_engine
    await _write(store, "ours")
    assert not engine._has_events


async def test_whoever_only_looks_needs_no_thread(store: Store) -> None:
    """Single reads and reads that belong together go on where no thread is to be had."""
    assert [] == await _names(store)
    cast("DirectEngine", store._engine)._threads.shutdown()
    assert [] == await _names(store)
    async with store.snapshot() as connection:
        assert 7 == await connection.scalar(text("SELECT 7"))
    cast("DirectEngine", store._engine)._threads = ThreadPoolExecutor(1)


async def test_a_cancelled_wait_leaves_no_lock_behind(store: Store) -> None:
    """A task that is cancelled while it waits for the lock neither writes nor keeps the lock."""
    with closing(sqlite3.connect(store.address.path or "", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(_write(store, "cancelled"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.sleep(0.05)
        other.execute("COMMIT")
        with suppress(asyncio.CancelledError):
            await waiting
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    assert waiting.cancelled()
    await _write(store, "next")
    assert ["next"] == await _names(store)


async def _write(store: Store, name: str) -> None:
    async with store.write() as connection:
        await connection.execute(text("INSERT INTO notes VALUES (:name)"), {"name": name})


def _moved(store: Store) -> dict[Path, Path]:
    """Move the file of a store and those beside it away, and say from where to where."""
    path = store.address.path or Path()
    away = path.parent / "away"
    away.mkdir()
    return {name: name.rename(away / name.name) for name in path.parent.glob(f"{path.name}*")}


@pytest.mark.parametrize("replaced", [False, True], ids=["moved", "replaced"])
async def test_nobody_works_with_a_file_that_left_its_place(store: Store, replaced: bool) -> None:
    """Moved or replaced, nothing of it is read or written: who stops writes does so elsewhere."""
    await _write(store, "before")
    places = _moved(store)
    if replaced:
        for place, now_at in places.items():
            shutil.copyfile(now_at, place)
    for begin in (store.read, store.snapshot, store.write):
        with pytest.raises(StorageUnavailable, match="put it back, or restart the worker"):
            async with begin():
                pass
    assert replaced == (store.address.path or Path()).exists()


async def test_a_file_that_is_put_back_is_used_again(store: Store) -> None:
    """It is the same file, with what was in it, whoever looked meanwhile."""
    await _write(store, "before")
    places = _moved(store)
    with pytest.raises(StorageUnavailable):
        await _names(store)
    for place, now_at in places.items():
        now_at.rename(place)
    assert ["before"] == await _names(store)


async def test_a_file_replaced_while_a_writer_waits_is_not_written(store: Store) -> None:
    """The place is looked at after the wait for the lock, too."""
    with closing(sqlite3.connect(store.address.path or "", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(_write(store, "late"))
        await asyncio.sleep(0.05)
        places = _moved(store)
        other.execute("COMMIT")
    with pytest.raises(StorageUnavailable):
        await waiting
    for place, now_at in places.items():
        if now_at.exists():
            now_at.rename(place)
    assert [] == await _names(store)


_COME_AND_GO = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as connection:
    connection.execute("INSERT INTO notes VALUES (?)", sys.argv[2:])
connection.close()
"""


def _another_process_writes(store: Store, name: str) -> None:
    """Let a process open the file, add a row and leave it, as a worker does that is restarted."""
    subprocess.run([sys.executable, "-c", _COME_AND_GO, str(store.address.path), name], check=True)


async def test_a_second_store_takes_no_lock_from_the_first(store: Store) -> None:
    """Two in one process, as in `triage serve`: who leaves the file last does not take the log."""
    second = await Store.open(store.address.url.render_as_string())
    for name in ("a", "b"):
        _another_process_writes(store, name)
        await _write(second, f"{name} of ours")
    expected = ["a", "a of ours", "b", "b of ours"]
    assert (expected, expected) == (await _names(store), await _names(second))
    await second.close()
    _another_process_writes(store, "c")
    assert [*expected, "c"] == await _names(store)


@pytest.mark.parametrize("end", ["-wal", "-shm"])
async def test_nobody_works_beside_a_log_that_left_its_place(store: Store, end: str) -> None:
    """The newest commits and the locks are in it: who comes later would see neither."""
    await _write(store, "before")
    places = {place: away for place, away in _moved(store).items() if not place.name.endswith(end)}
    for place, away in places.items():
        away.rename(place)
    for begin in (store.read, store.snapshot, store.write):
        with pytest.raises(StorageUnavailable, match="-wal or -shm"):
            async with begin():
                pass
    place = Path(f"{store.address.path}{end}")
    _put_back(place)
    assert ["before"] == await _names(store)


async def test_a_link_to_the_file_is_the_file(tmp_path: Path) -> None:
    """What stands beside it is looked for beside the file, and its loss is seen there."""
    real, link = tmp_path / "real", tmp_path / "link.db"
    real.mkdir()
    link.symlink_to(real / "triage.db")
    linked = await Store.open(f"sqlite:///{link}")
    assert {"triage.db", "triage.db-wal", "triage.db-shm"} == {p.name for p in real.iterdir()}
    (real / "triage.db-wal").rename(tmp_path / "away")
    with pytest.raises(StorageUnavailable, match="-wal or -shm"):
        await _names(linked)
    await linked.close()


def _put_back(place: Path) -> None:
    """Move a file to where it was, if nobody has made another one there."""
    assert not place.exists()
    (place.parent / "away" / place.name).rename(place)


@contextmanager
def _read_without_a_log(path: Path) -> Iterator[sqlite3.Connection]:
    """Look at a file that has no log: SQLite then refuses one at once, it waits for nobody."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE notes (name TEXT PRIMARY KEY)")
        other.execute("BEGIN")
        other.execute("SELECT * FROM notes").fetchall()
        yield other


@pytest.fixture
async def refused(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Is set when an opening has met somebody else in the file for the second time."""
    event, errors = asyncio.Event(), list[sqlite3.Error]()
    loop = asyncio.get_running_loop()

    def switch(connection: sqlite3.Connection) -> None:
        try:
            turn_on_wal(connection)
        except sqlite3.Error as error:
            errors.append(error)
            if len(errors) == 2:
                loop.call_soon_threadsafe(event.set)
            raise

    monkeypatch.setattr("triage.storage.direct.turn_on_wal", switch)
    return event


async def _begun(path: Path, refused: asyncio.Event) -> asyncio.Task[Store]:
    """Begin to open a file, and return once that is over or has to wait."""
    opening = asyncio.create_task(Store.open(f"sqlite:///{path}"))
    waiting = asyncio.create_task(refused.wait())
    await asyncio.wait({opening, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return opening


async def test_a_file_that_others_read_in_another_way_is_waited_for(
    tmp_path: Path, refused: asyncio.Event
) -> None:
    """Whoever makes a new file at the same moment is in it without a log, and then out of it."""
    path = tmp_path / "new.db"
    with _read_without_a_log(path) as other:
        opening = await _begun(path, refused)
        assert not opening.done()
        other.execute("COMMIT")
        opened = await opening
    assert [] == await _names(opened)
    await opened.close()


async def test_an_opening_that_is_cancelled_while_it_waits_leaves_the_file(
    tmp_path: Path, refused: asyncio.Event
) -> None:
    """It ends at once, and whoever is in the file can then have it as a whole."""
    path = tmp_path / "new.db"
    with _read_without_a_log(path) as other:
        opening = await _begun(path, refused)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        other.execute("COMMIT")
        other.execute("BEGIN EXCLUSIVE")


async def test_a_file_that_others_read_in_another_way_for_long_is_unavailable(
    tmp_path: Path,
) -> None:
    """A copy without a log, while somebody looks at it: the cause is told, and in words of ours."""
    path = tmp_path / "copied.db"
    with (
        _read_without_a_log(path),
        pytest.raises(StorageUnavailable, match=r"stayed locked by another process.*SQLITE_BUSY"),
    ):
        await Store.open(f"sqlite:///{path}", opening_seconds=0.1)


async def test_nobody_has_an_open_file_as_a_whole(store: Store) -> None:
    """A store that is idle holds it open, so no reader and no beginning ever meets such a lock."""
    cast("DirectEngine", store._engine).sync_engine.dispose()
    with closing(sqlite3.connect(store.address.path or "", timeout=0)) as other:
        with pytest.raises(sqlite3.OperationalError) as caught:
            other.execute("PRAGMA journal_mode = DELETE")
        assert "SQLITE_BUSY" == caught.value.sqlite_errorname


_OPEN_AND_LEAVE = """
import asyncio, sys
from triage.storage.engine import Store

async def come_and_go(places):
    for place in places:
        await (await Store.open(f"sqlite:///{place}")).close()

asyncio.run(come_and_go(sys.argv[1:]))
"""


async def test_processes_may_make_a_file_at_once(tmp_path: Path) -> None:
    """Two that come to one new file after the other at the same time are in nobody's way."""
    places = [str(tmp_path / f"{number}.db") for number in range(60)]
    started = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", _OPEN_AND_LEAVE, *places)
        for _ in range(2)
    ]
    assert [0, 0] == [await process.wait() for process in started]
