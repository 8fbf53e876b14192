"""A gate in the middle of something, so that a test can act exactly then."""

from __future__ import annotations

import asyncio


class Gate:
    """Holds whoever passes it until the test opens it."""

    def __init__(self) -> None:
        self._entered = asyncio.Event()
        self._opened = asyncio.Event()

    async def hold(self) -> None:
        """Say that somebody is here, and wait."""
        self._entered.set()
        await self._opened.wait()

    async def entered(self) -> None:
        """Return once somebody waits at the gate."""
        async with asyncio.timeout(90):
            await self._entered.wait()

    def open(self) -> None:
        """Let everybody through, now and later."""
        self._opened.set()
