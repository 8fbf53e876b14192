"""Waits for a SQLite file that others are in, where SQLite itself does not.

Why it exists: a lock that SQLite knows how to wait for is waited for inside it. But it gives up at
once where two waiting for each other could wait for ever: a switch to write-ahead logging is one.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Final

from triage.storage.errors import is_busy

FIRST_SECONDS: Final = 0.001
LONGEST_SECONDS: Final = 0.05


async def until_free(attempt: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Attempt something again and again while somebody else is in the way; the event loop goes on.

    Args:
        attempt: what to do; it must be safe to do again after it has failed half-way.
        seconds: how long to go on. The last attempt's own error is raised, and any other at once.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    pause = FIRST_SECONDS
    while True:
        try:
            return await attempt()
        except sqlite3.Error as error:
            if not is_busy(error) or loop.time() >= end:
                raise
        # In step with each other two would meet again and again.
        await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - jitter, not a secret
        pause = min(2 * pause, LONGEST_SECONDS)
