"""Opens the settings' database for a command, with the schema of this program."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from triage.cli.errors import RefusedError
from triage.settings import Settings, load_settings
from triage.storage.address import Address, parse_address
from triage.storage.engine import Store
from triage.storage.errors import StorageMisconfigured
from triage.storage.schema import REVISIONS
from triage.storage.version import check_schema, schema_revision

ELSEWHERE: Final = (
    "go to the folder that the worker runs in, or set TRIAGE_HOME or TRIAGE_DATABASE_URL as it has "
    "them"
)
CREATE: Final = f"{ELSEWHERE}; --create makes one here, which no worker may use"
LOOK_SECONDS: Final = 4.0
"""What is only shown beside something else must not keep it waiting."""


@asynccontextmanager
async def open_store(*, create: bool = True, hint: str = ELSEWHERE) -> AsyncIterator[Store]:
    """Open the database; one that is new or older is upgraded first.

    Args:
        create: whether one that is not there yet is made. What is said of the workers' database
            must not be said of one that was made a moment ago.
        hint: what to do where there is none.

    Raises:
        RefusedError: it is not there, and none is to be made.
        SettingsError: the settings cannot be used.
        StorageError: the database cannot be used.
    """
    address = parse_address(load_settings().database_url)
    if not create and address.path is not None and not address.path.exists():
        raise _absent(address, hint)
    store = await Store.open(load_settings().database_url)
    try:
        revision = await schema_revision(store)
        if revision is None and not create:
            raise _absent(address, hint)
        if revision != REVISIONS[-1]:
            # Alembic is slow to load, and hardly ever needed.
            from triage.storage.migrate import upgrade_store  # noqa: PLC0415 - see above

            await upgrade_store(store)
        yield store
    finally:
        await store.close()


def _absent(address: Address, hint: str) -> RefusedError:
    return RefusedError(f"there is no database at {address.shown}: nothing was made", hint)


async def must_exist(hint: str = ELSEWHERE) -> None:
    """See that the database is there, before anybody is asked about what is to be kept in it.

    It is neither made nor upgraded.

    Raises:
        RefusedError: it is not there.
        SettingsError: the settings cannot be used.
        StorageError: the database cannot be used.
    """
    url = load_settings().database_url
    address = parse_address(url)
    if address.path is not None and not address.path.exists():
        raise _absent(address, hint)
    store = await Store.open(url)
    try:
        if await schema_revision(store) is None:
            raise _absent(address, hint)
    finally:
        await store.close()


@asynccontextmanager
async def look_into_store(settings: Settings) -> AsyncIterator[Store]:
    """Open the database as it is: none is made and none is upgraded.

    Raises:
        StorageError: it is not there, or cannot be used; the message is short and names it.
    """
    address = parse_address(settings.database_url)
    if address.path is not None and not address.path.exists():
        raise StorageMisconfigured(f"{address.shown}: there is none yet")
    store = await Store.open(settings.database_url, transaction_seconds=LOOK_SECONDS)
    try:
        await check_schema(store)
        yield store
    finally:
        await store.close()


def place() -> str:
    """Return where the settings' database is, to say in which one nothing was found."""
    return parse_address(load_settings().database_url).shown
