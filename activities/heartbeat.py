"""Heartbeats for an activity that waits on the far end of a wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity


@asynccontextmanager
async def heartbeats(every_seconds: float = 1.0) -> AsyncIterator[None]:
    """Tell the server every second that the attempt lives; a lost worker is noticed by its silence.

    An activity that does not heartbeat cannot be cancelled either.
    """
    task = asyncio.create_task(_beat(every_seconds))
    try:
        yield
    finally:
        task.cancel()


async def _beat(every_seconds: float) -> None:
    # Sleeping first: a quick write costs no heartbeat.
    while True:
        await asyncio.sleep(every_seconds)
        activity.heartbeat()
