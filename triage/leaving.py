"""Leaving a program within bounded time.

Why it exists: `asyncio.run` cancels what is left once and then waits for it for ever. A driver that
is cancelled while it closes may wait in its own clean-up for a thread that has ended already, and
only a second cancellation ends that. A program that was told to stop must stop.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import Final

ROUNDS: Final = 3
ROUND_SECONDS: Final = 2.0
STUCK_STATUS: Final = 70


async def end_leftovers() -> None:
    """Cancel every other task of this loop, and again if it has not ended in time.

    Call it last: what is cancelled here has nobody who waits for it any more.
    """
    for _ in range(ROUNDS):
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if not left:
            return
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=ROUND_SECONDS)


def end_within(seconds: float, name: str) -> None:
    """End this process after `seconds` even if its clean-up hangs; a kill is what it is built for.

    Args:
        seconds: more than an orderly end takes.
        name: of the program, for the line on stderr.
    """

    def end() -> None:
        print(f"{name}: did not end in {seconds:g} s: ends now", file=sys.stderr, flush=True)  # noqa: T201 - meant for people
        os._exit(STUCK_STATUS)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
