"""What read tools returned, kept out of the run's history.

Why it exists: history grows with every step that repeats content. Here a step's evidence stands
once, under the version of the tool call that returned it, and its content can expire while its
locator and digest stay. What was read in vain stays here, too: a run's own is found by its trail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cache
from typing import Final

from sqlalchemy import ColumnElement, Executable, Label, bindparam, select, tuple_, update
from sqlalchemy.engine import RowMapping

from triage.contracts.canonical import digests_like
from triage.contracts.trail import START, onward
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.errors import StorageUnavailable
from triage.storage.rows import first_row, insert_first
from triage.storage.schema import evidence

FIRST_VERSION: Final = 1
"""A run's version when it begins, before it has called anything."""
_ANY_VERSION: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class EvidenceRow:
    """One tool's result, to be kept.

    Attributes:
        scope: the run's scope.
        version: the run's version at which the call was pending.
        evidence_id: what decisions cite.
        tool: which tool returned it.
        arguments: the call's arguments, canonical JSON.
        source: where it came from.
        locator: where to find it there.
        digest: over the content.
        content: the result.
        size_bytes: of the content.
        expires_at: from when on the content is unavailable; None means never.
        key_id: the key that the content is encrypted with; empty for none.
        call: names the call among others of the same version, which were given up; empty for a run
            that keeps no trail.
        after: the trail of what the run had read before.
    """

    scope: str
    version: int
    evidence_id: str
    tool: str
    arguments: bytes
    source: str
    locator: str
    digest: str
    content: bytes
    size_bytes: int
    expires_at: datetime | None = None
    key_id: str = ""
    call: str = ""
    after: str = START


@dataclass(frozen=True, kw_only=True)
class StoredEvidence:
    """A result as the store has it: an `EvidenceRow` whose content may be gone.

    Attributes:
        content: None when it has expired or was purged, which is not "empty"; the locator, the
            digest and the size stay.
        created_at: when it was first put.
    """

    scope: str
    version: int
    evidence_id: str
    tool: str
    arguments: bytes
    source: str
    locator: str
    digest: str
    content: bytes | None
    size_bytes: int
    expires_at: datetime | None
    key_id: str
    created_at: datetime
    call: str
    after: str

    @property
    def trail(self) -> str:
        """The trail of a run that has read this, too."""
        return onward(self.after, self.evidence_id, self.digest)


def followed(rows: Iterable[StoredEvidence], trail: str) -> list[StoredEvidence] | None:
    """Return what a run has read, oldest first, by its trail; None if a part of it is not there."""
    by_trail = {row.trail: row for row in rows}
    found = list[StoredEvidence]()
    while trail != START:
        row = by_trail.pop(trail, None)
        if row is None:
            return None
        found.append(row)
        trail = row.after
    return found[::-1]


def receipts_among(
    rows: Iterable[StoredEvidence], digests: Collection[str]
) -> list[StoredEvidence]:
    """Return the rows of these digests, which may be abbreviated."""
    bounds = [digests_like(digest) for digest in digests]
    return [row for row in rows if any(low <= row.digest <= high for low, high in bounds)]


class EvidenceStore:
    """Evidence by (scope, version, call)."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, row: EvidenceRow) -> StoredEvidence:
        """Keep a result; the first one under (scope, version, call) stands.

        Returns:
            The row that stands: a repeated call gets what the first one returned.
        """
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            if (new := await keep_evidence(connection, row, now)) is not None:
                return _until(new, now)
            found = await first_row(connection, select(evidence).where(*_key_of(row)))
        if found is None:
            raise StorageUnavailable("evidence vanished while it was put: try again")
        return _until(_to_stored(found), now)

    async def load(self, scope: str, before_version: int) -> list[StoredEvidence]:
        """Return the evidence that a run had before `before_version`, oldest first."""
        if before_version <= FIRST_VERSION:
            return []
        which = {"of": scope, "before": before_version}
        query = _all_before(self._store.clock)
        async with self._store.read() as connection:
            found = (await connection.execute(query, which)).mappings().all()
        return [_until(_to_stored(row), self._store.time_in(row)) for row in found]

    async def copy(self, rows: Sequence[StoredEvidence], target: str) -> list[StoredEvidence]:
        """Copy rows of another scope to one that begins with them, and return the copies in order.

        Versions and expiries stay, and what has gone in the one is gone in the other. A copy that
        is there already stands.
        """
        trail = START
        async with self._store.write() as connection:
            for row in rows:
                found = await first_row(connection, select(evidence).where(*_key_of(row)))
                if found is None:
                    raise StorageUnavailable("evidence vanished while it was copied: try again")
                copied = {**found, "scope": target, "after": trail}
                await insert_first(connection, evidence, copied)
                trail = onward(trail, row.evidence_id, row.digest)
        return followed(await self.load(target, before_version=_ANY_VERSION), trail) or []

    async def purge_expired(self, now: datetime | None = None, limit: int = 1000) -> int:
        """Remove the content of at most `limit` expired rows; everything else stays.

        Returns:
            How many contents were removed.
        """
        e = evidence.c
        key = (e.scope, e.version, e.call)
        async with self._store.write() as connection:
            moment = now or await self._store.now(connection)
            due = select(*key).where(e.expires_at <= moment, e.content.is_not(None)).limit(limit)
            gone = await connection.execute(
                update(evidence).where(tuple_(*key).in_(due)).values(content=None, purged_at=moment)
            )
        return gone.rowcount


async def keep_evidence(
    connection: AsyncConnection, row: EvidenceRow, now: datetime
) -> StoredEvidence | None:
    """Keep a result in the caller's transaction; None if one of the same call stands."""
    values = {**vars(row), "created_at": now}
    if not await insert_first(connection, evidence, values):
        return None
    return StoredEvidence(**values)


def _key_of(row: EvidenceRow | StoredEvidence) -> tuple[ColumnElement[bool], ...]:
    e = evidence.c
    return (e.scope == row.scope, e.version == row.version, e.call == row.call)


@cache
def _all_before(clock: Label[datetime]) -> Executable:
    """Return the query for a run's evidence, built once: every question asks it."""
    e = evidence.c
    return (
        select(evidence, clock)
        .where(e.scope == bindparam("of"), e.version < bindparam("before"))
        .order_by(e.version, e.created_at)
    )


def _to_stored(found: RowMapping) -> StoredEvidence:
    return StoredEvidence(**{field.name: found[field.name] for field in fields(StoredEvidence)})


def _until(row: StoredEvidence, now: datetime) -> StoredEvidence:
    """Leave out content that has expired, whether or not it was purged yet."""
    if row.expires_at is not None and row.expires_at <= now:
        return replace(row, content=None)
    return row
