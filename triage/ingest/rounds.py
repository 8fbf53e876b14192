"""A task that does its work again and again, whatever goes wrong in between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from triage.storage.errors import StorageError

_log = logging.getLogger(__name__)


async def rounds(
    work: Callable[[], Awaitable[None]], name: str, period_seconds: float, wanted: asyncio.Event
) -> None:
    """Call `work` every `period_seconds`, and at once when `wanted` is set, until cancelled.

    No fault ends it: the next round may do better.
    """
    while True:
        wanted.clear()
        try:
            await work()
        except StorageError:
            _log.warning("the database does not answer", exc_info=True, extra={"task": name})
        except Exception:  # noqa: BLE001 - see above
            _log.warning("a round broke off", exc_info=True, extra={"task": name})
        try:
            await asyncio.wait_for(wanted.wait(), period_seconds)
        except TimeoutError:
            continue


@asynccontextmanager
async def running(*tasks: Awaitable[None]) -> AsyncIterator[None]:
    """Let tasks run while the body does."""
    started = [asyncio.ensure_future(task) for task in tasks]
    try:
        yield
    finally:
        for task in started:
            task.cancel()
        await asyncio.gather(*started, return_exceptions=True)
