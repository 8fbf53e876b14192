"""What a read does while the store does not answer: it waits, and uses up none of its tries.

Why it exists: the tries of a read are for its tool. A database that is locked, restarted or full
for some seconds is nobody's fault in the run, and must not end it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.guard import clock_stopped
from triage.converter import decode_raw
from triage.storage.errors import StorageUnavailable

Answer = TypeVar("Answer")

FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 10.0
LOCAL_WAIT_SECONDS: Final = 300.0
"""For a read inside a workflow task: half of what the workflow gives it in all."""
MARGIN_SECONDS: Final = 1.0
"""Before the server gives an attempt up, it ends by itself, and says when to come again."""

_log = logging.getLogger(__name__)


async def patiently(work: Callable[[], Awaitable[Answer]]) -> Answer:
    """Do something with the store, again and again while it does not answer.

    Args:
        work: what to do; a second time it must change nothing.

    Raises:
        ApplicationError: the store did not answer for as long as this attempt may wait.
    """
    until = asyncio.get_running_loop().time() + _seconds_left()
    with clock_stopped():
        return await _tried(work, until)


async def _tried(work: Callable[[], Awaitable[Answer]], until: float) -> Answer:
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return await work()
        except StorageUnavailable:
            if asyncio.get_running_loop().time() + pause > until:
                raise _later() from None
        _log.warning("the store does not answer: waiting for it")
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _seconds_left() -> float:
    info = activity.info()
    if info.is_local or info.start_to_close_timeout is None:
        return LOCAL_WAIT_SECONDS
    passed = datetime.now(UTC) - info.started_time
    return (info.start_to_close_timeout - max(passed, timedelta())).total_seconds() - MARGIN_SECONDS


def own_tries() -> int:
    """Return how many attempts there were, this one included, that the store did not end."""
    return max(1, activity.info().attempt - _lost())


def _lost() -> int:
    """Return how many attempts before this one the store has ended."""
    told = activity.info().heartbeat_details
    try:
        return decode_raw(told[0], int) if told else 0
    except ApplicationError:
        # A tool of an extension has told something of its own.
        return 0


def _later() -> ApplicationError:
    """What ends an attempt: the next one, if the tool's rule has one left, comes after a pause."""
    if not activity.info().is_local:
        # The server keeps it for the attempts that follow, whatever ends those.
        activity.heartbeat(_lost() + 1)
    pause = min(5.0 * 2 ** (activity.info().attempt - 1), 3 * LONGEST_PAUSE_SECONDS)
    return ApplicationError(
        "the store does not answer",
        type=StorageUnavailable.__name__,
        next_retry_delay=timedelta(seconds=pause),
    )
