"""Opens the settings' database for a command, with the schema of this program."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from triage.settings import load_settings
from triage.storage.engine import Store
from triage.storage.schema import REVISIONS
from triage.storage.version import schema_revision


@asynccontextmanager
async def open_store() -> AsyncIterator[Store]:
    """Open the database; one that is new or older is upgraded first.

    Raises:
        SettingsError: the settings cannot be used.
        StorageError: the database cannot be used.
    """
    store = await Store.open(load_settings().database_url)
    try:
        if await schema_revision(store) != REVISIONS[-1]:
            # Alembic is slow to load, and hardly ever needed.
            from triage.storage.migrate import upgrade_store  # noqa: PLC0415 - see above

            await upgrade_store(store)
        yield store
    finally:
        await store.close()
