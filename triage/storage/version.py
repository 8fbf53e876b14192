"""Which schema a database has; kept apart from the migrations, whose library is slow to load."""

from __future__ import annotations

from sqlalchemy import inspect, text

from triage.storage.engine import Store
from triage.storage.errors import StorageMisconfigured
from triage.storage.schema import REVISIONS


async def schema_revision(store: Store) -> str | None:
    """Return the revision of the store's schema, or None if it has no tables of ours yet."""
    async with store.read() as connection:
        if not await connection.run_sync(lambda c: inspect(c).has_table("alembic_version")):
            return None
        revision = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    return None if revision is None else str(revision)


async def check_schema(store: Store) -> None:
    """See that the store has exactly the schema that this program works with.

    Raises:
        StorageMisconfigured: it has none, an older or a newer one; the message says what to do.
    """
    revision, wanted = await schema_revision(store), REVISIONS[-1]
    place = store.address.shown
    if revision is None:
        raise StorageMisconfigured(f"{place}: it has no tables yet: upgrade its schema first")
    if revision == wanted:
        return
    if revision in REVISIONS:
        raise StorageMisconfigured(
            f"{place}: its schema ({revision}) is older than this program's ({wanted}): "
            "upgrade the schema first"
        )
    raise newer_schema(place)


def newer_schema(place: str) -> StorageMisconfigured:
    """The error for a schema that this program has never heard of."""
    return StorageMisconfigured(
        f"{place}: its schema is newer than this program's ({REVISIONS[-1]}): use a newer program"
    )
