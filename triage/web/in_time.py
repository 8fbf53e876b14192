"""Waits for the database no longer than a sender waits for an answer.

Why it exists: a transaction that is cut off ends when its driver says so, and a driver whose server
stands still asks that server first. Whoever sent something is told before that, and what is left
behind ends by itself: it may have been recorded, and the same delivery may come again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from triage.storage.errors import StorageUnavailable

ANSWER_SECONDS: Final = 1.8
"""A little longer than an admission may take, and less than the two seconds that are promised."""

T = TypeVar("T")

_left: Final[set[asyncio.Task[Any]]] = set()


async def in_time(work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns.

    Raises:
        StorageUnavailable: it took too long; whether it did anything is open.
    """
    task = asyncio.create_task(work)
    _left.add(task)
    task.add_done_callback(_forget)
    try:
        done, _ = await asyncio.wait({task}, timeout=ANSWER_SECONDS)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        raise StorageUnavailable("the database did not answer in time: try again")
    return task.result()


def _forget(task: asyncio.Task[Any]) -> None:
    _left.discard(task)
    if not task.cancelled():
        # Of one that was left behind nobody else takes the error.
        task.exception()
