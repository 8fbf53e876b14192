"""Texts kept by digest: requests, scripts, rules, prompts and weights.

Why it exists: a run pins what it was decided by, and its history must not hold it. A digest in the
history and a body here serve both, and the body can have a retention of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Final, Literal

from sqlalchemy import Executable, Label, bindparam, case, or_, select, tuple_, update
from sqlalchemy.engine import RowMapping

from triage.contracts.canonical import digest_of_bytes, digests_like
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.errors import StorageMisconfigured
from triage.storage.rows import first_row, insert_first
from triage.storage.schema import documents

SHARED: Final = ""
"""The scope of documents that belong to no single run."""


class DocumentKind(StrEnum):
    """What a document is."""

    REQUEST = "request"
    TARGET = "target"
    SCRIPT = "script"
    POLICY = "policy"
    PROMPT = "prompt"
    WEIGHTS = "weights"


@dataclass(frozen=True, kw_only=True)
class Document:
    """A body, exactly as it was put."""

    scope: str
    kind: DocumentKind
    digest: str
    body: bytes
    created_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Unavailable:
    """The document was there, and its body is gone: never read this as an empty body."""

    digest: str
    reason: Literal["expired", "purged"]

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class Missing:
    """No such document was ever put."""

    digest: str

    def __bool__(self) -> bool:
        return False


class DocumentStore:
    """Bodies by (scope, kind, digest). Putting the same body again is the same document."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(
        self, scope: str, kind: DocumentKind, body: bytes, *, expires_at: datetime | None = None
    ) -> str:
        """Keep a body.

        Putting it again keeps the later of the two expiries, and brings back a body that had gone.

        Args:
            scope: the run's scope, or `SHARED`.
            kind: what it is.
            body: any bytes.
            expires_at: from when on it reads as unavailable; None means never.

        Returns:
            Its digest: ``sha256:`` over the bytes.
        """
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            return await keep(connection, scope, kind, body, now=now, expires_at=expires_at)

    async def get(
        self, scope: str, kind: DocumentKind, digest: str
    ) -> Document | Unavailable | Missing:
        """Return a document; only a `Document` is true.

        Args:
            scope: the run's scope, or `SHARED`.
            kind: what it is.
            digest: its digest, which may be abbreviated; where two may be meant, neither is.

        Raises:
            StorageMisconfigured: the stored body no longer has its digest.
        """
        first, last = digests_like(digest)
        which = {"of": scope, "what": DocumentKind(kind), "first": first, "last": last}
        query = _digests_between(self._store.clock)
        async with self._store.read() as connection:
            found = (await connection.execute(query, which)).mappings().all()
        return self._readable(found[0]) if len(found) == 1 else Missing(digest=digest)

    async def newest(self, scope: str, kind: DocumentKind) -> Document | Unavailable | None:
        """Return the document of this kind that a scope got last, or None if it has none.

        Raises:
            StorageMisconfigured: the stored body no longer has its digest.
        """
        d = documents.c
        query = (
            select(documents, self._store.clock)
            .where(d.scope == scope, d.kind == DocumentKind(kind))
            .order_by(d.created_at.desc())
            .limit(1)
        )
        async with self._store.read() as connection:
            found = await first_row(connection, query)
        return None if found is None else self._readable(found)

    def _readable(self, found: RowMapping) -> Document | Unavailable:
        if found["body"] is None:
            return Unavailable(digest=found["digest"], reason="purged")
        if found["expires_at"] is not None and found["expires_at"] <= self._store.time_in(found):
            return Unavailable(digest=found["digest"], reason="expired")
        return _to_document(found)

    async def purge_expired(self, now: datetime | None = None, limit: int = 1000) -> int:
        """Remove the bodies of at most `limit` expired documents; digests and sizes stay.

        Returns:
            How many bodies were removed.
        """
        d = documents.c
        key = (d.scope, d.kind, d.digest)
        async with self._store.write() as connection:
            moment = now or await self._store.now(connection)
            due = select(*key).where(d.expires_at <= moment, d.body.is_not(None)).limit(limit)
            gone = await connection.execute(
                update(documents).where(tuple_(*key).in_(due)).values(body=None, purged_at=moment)
            )
        return gone.rowcount


async def keep(
    connection: AsyncConnection,
    scope: str,
    kind: DocumentKind,
    body: bytes,
    *,
    now: datetime,
    expires_at: datetime | None = None,
) -> str:
    """Do what `DocumentStore.put` does, in the caller's transaction and at its time."""
    values = {
        "scope": scope,
        "kind": DocumentKind(kind),
        "digest": digest_of_bytes(body),
        "body": body,
        "size_bytes": len(body),
        "key_id": "",
        "created_at": now,
        "expires_at": expires_at,
    }
    if not await insert_first(connection, documents, values):
        await _renew(connection, values)
    return digest_of_bytes(body)


@cache
def _digests_between(clock: Label[datetime]) -> Executable:
    """Return the query for documents of like digests, built once: every question asks it.

    Two are enough to know that neither is meant.
    """
    d = documents.c
    return (
        select(documents, clock)
        .where(
            d.scope == bindparam("of"),
            d.kind == bindparam("what"),
            d.digest.between(bindparam("first"), bindparam("last")),
        )
        .limit(2)
    )


def _named(scope: str, kind: DocumentKind, digest: str) -> tuple[Any, ...]:
    d = documents.c
    return (d.scope == scope, d.kind == DocumentKind(kind), d.digest == digest)


async def _renew(connection: AsyncConnection, values: dict[str, Any]) -> None:
    d = documents.c
    expires_at = values["expires_at"]
    later = (
        None
        if expires_at is None
        else case(
            (or_(d.expires_at.is_(None), d.expires_at > expires_at), d.expires_at),
            else_=expires_at,
        )
    )
    await connection.execute(
        update(documents)
        .where(*_named(values["scope"], values["kind"], values["digest"]))
        .values(body=values["body"], purged_at=None, expires_at=later)
    )


def _to_document(found: RowMapping) -> Document:
    if digest_of_bytes(found["body"]) != found["digest"]:
        raise StorageMisconfigured("a stored document does not have its digest: restore a backup")
    return Document(
        scope=found["scope"],
        kind=DocumentKind(found["kind"]),
        digest=found["digest"],
        body=found["body"],
        created_at=found["created_at"],
        expires_at=found["expires_at"],
    )
