"""Where looking through a repository stopped, so that the next look goes on from there."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select, update

from triage.contracts.canonical import short_hash
from triage.storage.engine import Store
from triage.storage.rows import insert_first
from triage.storage.schema_intake import cursors


class Cursor:
    """The place of one repository; it only moves forward, and never past the database's now.

    A source may call a change later than now, by mistake or by malice: kept as it is, that place
    would hide what comes until then.

    Args:
        store: where it is kept.
        tenant: whose it is.
        source: where the repository lives, such as ``github``.
        repository: its name.
    """

    def __init__(self, store: Store, *, tenant: str, source: str, repository: str) -> None:
        self._store = store
        self._names = {"tenant": tenant, "source": source, "repository": repository}
        self._key = short_hash("cursor", tenant, source, repository)

    async def position(self, start: datetime | None = None) -> datetime:
        """Return the place; one that is new begins at `start`, or now by the database's clock.

        One that lies later than now is moved back to it.
        """
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            values = {
                **self._names,
                "cursor_key": self._key,
                "position": start or now,
                "updated_at": now,
            }
            await insert_first(connection, cursors, values)
            c = cursors.c
            ours = c.cursor_key == self._key
            await connection.execute(
                update(cursors).where(ours, c.position > now).values(position=now, updated_at=now)
            )
            found = await connection.scalar(select(c.position).where(ours))
        return found or now

    async def advance(self, position: datetime) -> None:
        """Move forward, at most to now; another process may be further already."""
        c = cursors.c
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            place = min(position, now)
            await connection.execute(
                update(cursors)
                .where(c.cursor_key == self._key, c.position < place)
                .values(position=place, updated_at=now)
            )
