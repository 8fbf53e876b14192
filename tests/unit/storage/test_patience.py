"""A SQLite file that others are in is waited for, and nothing else is."""

from __future__ import annotations

import sqlite3

import pytest

from triage.storage.patience import until_free

BUSY = (
    "SQLITE_BUSY",
    "SQLITE_BUSY_RECOVERY",
    "SQLITE_BUSY_SNAPSHOT",
    "SQLITE_LOCKED",
    "SQLITE_PROTOCOL",
)


class _Refusals:
    """An attempt that is refused so often, and then succeeds."""

    def __init__(self, name: str, times: int) -> None:
        self._name = name
        self._left = times
        self.made = 0

    async def __call__(self) -> None:
        self.made += 1
        self._left -= 1
        if self._left >= 0:
            error = sqlite3.OperationalError()
            error.sqlite_errorname = self._name
            raise error


@pytest.mark.parametrize("name", BUSY)
async def test_who_is_in_the_way_is_waited_for(name: str) -> None:
    """Whatever SQLite calls it when somebody else is in the file, it is attempted again."""
    attempt = _Refusals(name, times=5)
    await until_free(attempt, 60)
    assert 6 == attempt.made


@pytest.mark.parametrize("name", ["SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_IOERR_READ"])
async def test_what_is_wrong_for_good_is_told_at_once(name: str) -> None:
    """No time passes over a fault that nobody else takes away."""
    attempt = _Refusals(name, times=5)
    with pytest.raises(sqlite3.OperationalError):
        await until_free(attempt, 60)
    assert 1 == attempt.made


async def test_a_wait_that_was_in_vain_ends_with_its_cause() -> None:
    """When the time is up, what is told is who was in the way; one attempt is always made."""
    attempt = _Refusals("SQLITE_BUSY", times=1)
    with pytest.raises(sqlite3.OperationalError) as caught:
        await until_free(attempt, 0)
    assert ("SQLITE_BUSY", 1) == (caught.value.sqlite_errorname, attempt.made)
