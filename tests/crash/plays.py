"""How a cell is played: a worker is killed or frozen at a place, and another one ends the run."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from temporalio.client import WorkflowHandle

from tests.crash.nursery import Process
from tests.crash.places import Action, Place
from tests.crash.scene import BOTH_ROLES, SECONDS, Cell
from tests.crash.subjects import Subject
from triage.contracts.names import ACTIVITY_APPLY_LABELS
from triage.settings import Role
from triage.storage.engine import Store
from triage.storage.errors import StorageUnavailable

WAITING: Final = Place("waiting")
"""No fault point: the run waits for a person, and nobody does anything."""

LOCKED_SECONDS: Final = 3.0
"""After so long a wait for its lock, a database is said to be locked."""

FIRST_BYTE: Final = Place("wire.sending")
"""Between the last look at anything and the first byte: a request that nothing can call back."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What was there when the run had ended, and again after a frozen worker had gone on."""

    first: object
    second: object


async def undisturbed(subject: Subject) -> object:
    """Play a run that nothing happens to."""
    worker = await subject.cell.worker()
    handle = await subject.begin()
    await subject.help(handle)
    record = await subject.record(handle)
    await worker.kill()
    return record


async def play(subject: Subject, place: Place, action: Action) -> Seen:
    """Disturb a run, and return what it came to."""
    if action is Action.KILL:
        killed = _killed_waiting(subject) if place == WAITING else _killed(subject, place)
        record = await killed
        return Seen(first=record, second=record)
    if place == WAITING:
        return await _frozen_waiting(subject)
    if holds_the_database(subject.cell, place):
        return await _frozen_with_the_database(subject, place)
    return await _frozen(subject, place)


async def _killed(subject: Subject, place: Place) -> object:
    """The first worker kills itself at the place; the second is a production worker."""
    first = await subject.cell.worker(place)
    handle = await subject.begin()
    helping = asyncio.create_task(subject.help(handle))
    await subject.cell.dies(first, handle)
    return await _ended(subject, handle, helping)


async def _killed_waiting(subject: Subject) -> object:
    """Nobody is there when the person decides; the next worker hears of it."""
    first = await subject.cell.worker()
    handle = await subject.begin()
    await subject.cell.waiting(handle)
    await first.kill()
    await subject.help(handle)
    return await _ended(subject, handle, asyncio.sleep(0))


async def _ended(
    subject: Subject, handle: WorkflowHandle[Any, Any], helping: Awaitable[None]
) -> object:
    second = await subject.cell.worker()
    record = await subject.record(handle)
    await helping
    await second.kill()
    return record


async def _frozen(subject: Subject, place: Place) -> Seen:
    """The first worker freezes at the place, and goes on when the second has ended the run.

    Waking, it goes on with its attempt, and with the next one if the server gave it that, too.
    """
    cell, writes = subject.cell, is_in_the_write(place)
    decider = await cell.worker(roles=(Role.DECIDE,)) if writes else None
    roles = (Role.WRITE,) if writes else BOTH_ROLES
    first = await cell.worker(place, Action.FREEZE, roles)
    handle = await subject.begin()
    helping = asyncio.create_task(subject.help(handle))
    await cell.freezes(first, handle)
    second = await cell.worker(roles=roles)
    before = await subject.record(handle)
    await helping
    await first.thaw()
    assert 0 == await first.stop(), cell.log()
    after = await subject.record(handle, allow_repeats=place == FIRST_BYTE)
    await _gone(second, decider)
    return Seen(first=before, second=after)


async def _frozen_waiting(subject: Subject) -> Seen:
    """A worker freezes while nothing happens, and the person decides meanwhile."""
    cell = subject.cell
    first = await cell.worker()
    handle = await subject.begin()
    await cell.waiting(handle)
    os.kill(first.pid, signal.SIGSTOP)
    second = await cell.worker()
    await subject.help(handle)
    before = await subject.record(handle)
    first.go_on()
    assert 0 == await first.stop(), cell.log()
    after = await subject.record(handle)
    await _gone(second)
    return Seen(first=before, second=after)


async def _frozen_with_the_database(subject: Subject, place: Place) -> Seen:
    """A process that is frozen inside a transaction of SQLite's holds the one lock that there is.

    Nobody else can write, so the run waits for it. It is not taken over, and nothing is done twice.
    """
    cell = subject.cell
    first = await cell.worker(place, Action.FREEZE)
    handle = await subject.begin()
    helping = asyncio.create_task(subject.help(handle))
    await cell.freezes(first, handle)
    await see_that_nobody_can_write(cell)
    await first.thaw()
    before = await subject.record(handle)
    await helping
    after = await subject.record(handle)
    assert 0 == await first.stop(), cell.log()
    return Seen(first=before, second=after)


async def see_that_nobody_can_write(cell: Cell) -> None:
    """Find the database locked, as every other worker does."""
    store = await Store.open(
        cell.settings.database_url, transaction_seconds=LOCKED_SECONDS, opening_seconds=SECONDS
    )
    try:
        with suppress(StorageUnavailable):
            async with store.write():
                raise AssertionError("the frozen process holds no lock")
    finally:
        await store.close()


async def _gone(*processes: Process | None) -> None:
    for process in processes:
        if process is not None:
            await process.kill()


def holds_the_database(cell: Cell, place: Place) -> bool:
    """Whether a process that is frozen at a place keeps everybody else from writing."""
    in_transaction = place.point.startswith("audit.")
    return in_transaction and cell.settings.database_url.startswith("sqlite")


def is_in_the_write(place: Place) -> bool:
    """Whether only a worker with the role write comes to a place."""
    begins = ("write.", "wire.", "ledger.", "audit.before_commit operation.")
    command = place.point == "command"
    return not command and (str(place).startswith(begins) or place.subject == ACTIVITY_APPLY_LABELS)
