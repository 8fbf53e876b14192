"""The clock of the event loop, moved on: to wait for a limit takes no time, and none is too short.

Why it exists: a limit that is short enough to be waited for in a test is shorter than what a busy
machine takes for everything before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from unittest import mock

PATIENCE_SECONDS: Final = 120.0
"""Keeps what would hang from hanging, and is never reached: not on any machine."""


@contextmanager
def ahead(seconds: float) -> Iterator[None]:
    """Let the loop's clock be so much ahead: what waits for less than that gives up at once.

    What is begun inside has to end inside, as it would otherwise wait for so much longer.
    """
    loop = asyncio.get_running_loop()
    told = loop.time

    def time() -> float:
        return told() + seconds

    with mock.patch.object(loop, "time", time):
        yield
