"""The database that a command of a test uses, opened beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from triage.storage.engine import Store
from triage.storage.migrate import upgrade

Answer = TypeVar("Answer")


def url_in(home: Path) -> str:
    """The database URL of commands whose home is `home`."""
    return f"sqlite:///{home / 'triage.db'}"


def in_store(home: Path, work: Callable[[Store], Awaitable[Answer]]) -> Answer:
    """Do something with the store of a home, in an event loop of its own."""
    asyncio.run(upgrade(url_in(home)))
    return in_store_as_it_is(home, work)


def in_store_as_it_is(home: Path, work: Callable[[Store], Awaitable[Answer]]) -> Answer:
    """Do the same without bringing the store up to date first."""

    async def main() -> Answer:
        store = await Store.open(url_in(home))
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(main())
