"""Brings a database to the schema of this program, and refuses any other.

Why it exists: two processes may start at once on one database, and an old worker may meet a new
schema. The upgrade is one transaction that only one process is in; everybody else checks. The
library for migrations takes 11 MB, so only an upgrade that has something to do loads it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, text

from triage.storage.engine import Store
from triage.storage.schema import REVISIONS
from triage.storage.version import check_schema as check_schema
from triage.storage.version import newer_schema, schema_revision

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATIONS: Final = Path(__file__).parent / "migrations"
# Any constant of our own; held until the transaction ends, so a pooler cannot strand it.
_POSTGRESQL_LOCK: Final = text("SELECT pg_advisory_xact_lock(7201926431)")


async def upgrade(url: str) -> None:
    """Create or upgrade the tables of the database at `url`; safe to call from many processes.

    Raises:
        StorageError: the database cannot be used, or its schema is newer than this program's.
    """
    store = await Store.open(url)
    try:
        await upgrade_store(store)
    finally:
        await store.close()


async def upgrade_store(store: Store) -> None:
    """Do what `upgrade` does, on an open store."""
    if await schema_revision(store) == REVISIONS[-1]:
        return
    async with store.write() as connection:
        if not store.is_sqlite:
            await connection.execute(_POSTGRESQL_LOCK)
        await connection.run_sync(_upgrade, store.address.shown)


def alembic_config(connection: Connection) -> Config:
    """Alembic's settings, for a connection whose transaction the caller owns."""
    from alembic.config import Config  # noqa: PLC0415 - see above

    config = Config()
    # Alembic reads its options with %-interpolation.
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _upgrade(connection: Connection, place: str) -> None:
    from alembic import command  # noqa: PLC0415 - see above
    from alembic.runtime.migration import MigrationContext  # noqa: PLC0415 - likewise

    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in REVISIONS:
        raise newer_schema(place)
    command.upgrade(alembic_config(connection), REVISIONS[-1])
