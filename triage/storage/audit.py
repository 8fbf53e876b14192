"""The audit trail: one hash chain per tenant, written with what it records.

Why it exists: a move that nobody can prove did not happen cleanly. Each entry is appended in the
transaction of its move, so either both are there or neither is. Each entry's hash covers the one
before it; the newest hash, kept somewhere else, is what shows that the tail was cut off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pydantic import JsonValue
from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.engine import RowMapping

from triage.contracts.canonical import canonical_json, digest_of, digest_of_bytes
from triage.faults import Point, reach
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.errors import StorageUnavailable, StorageUnreadable
from triage.storage.raw import UNREADABLE, decoded, select_raw
from triage.storage.rows import insert_first
from triage.storage.schema import audit, audit_heads

EDITED_HEAD: Final = "the head of an audit chain cannot be read: it was edited"


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """One thing that happened.

    Attributes:
        tenant: whose chain it belongs to.
        kind: what happened, such as ``operation.dispatched``.
        subject: what it happened to, such as an operation key.
        at: the database's time.
        details: more, as JSON; ids, digests and codes, never content.
    """

    tenant: str
    kind: str
    subject: str
    at: datetime
    details: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AuditHead:
    """The newest entry of a chain; `seq` is the number of entries too."""

    tenant: str
    seq: int
    hash: str


# Built once, since to build a statement takes longer than to run it.
_INSERT: Final = insert(audit)
_HEAD: Final = audit_heads.c
_LOCKED_HEAD: Final = (
    select(_HEAD.tenant_key, _HEAD.seq, _HEAD.hash)
    .where(_HEAD.tenant_key == bindparam("of"))
    .with_for_update()
)
_MOVE_HEAD: Final = update(audit_heads).where(
    _HEAD.tenant_key == bindparam("of"), _HEAD.seq == bindparam("last_seq")
)


async def append(connection: AsyncConnection, entry: AuditEntry) -> AuditHead:
    """Append `entry` to its tenant's chain, in the caller's transaction.

    The chain stays locked until that transaction ends: append last.

    Raises:
        StorageError: it cannot be written; the caller's transaction must not be committed.
    """
    return await append_all(connection, [entry])


async def append_all(connection: AsyncConnection, entries: Sequence[AuditEntry]) -> AuditHead:
    """Append entries of one tenant in their order, as `append` does each; there is at least one."""
    last = entries[-1]
    head = await _locked_head(connection, last)
    rows = list[dict[str, Any]]()
    for seq, entry in enumerate(entries, head["seq"] + 1):
        before = rows[-1]["hash"] if rows else head["hash"]
        rows.append(_row(entry, head["tenant_key"], seq, before))
    await connection.execute(_INSERT, rows)
    seq, hash_ = rows[-1]["seq"], rows[-1]["hash"]
    newest = {"seq": seq, "hash": hash_, "updated_at": last.at}
    was = {"of": head["tenant_key"], "last_seq": head["seq"]}
    moved = await connection.execute(_MOVE_HEAD, newest | was)
    if moved.rowcount != 1:
        raise StorageUnavailable("the audit chain's head moved under its lock: nothing was written")
    reach(Point.AUDIT_BEFORE_COMMIT, last.kind)
    return AuditHead(tenant=last.tenant, seq=seq, hash=hash_)


def _row(entry: AuditEntry, tenant_key: str, seq: int, prev_hash: str) -> dict[str, Any]:
    """Return the row of an entry that follows on the one whose hash is `prev_hash`."""
    body = _hashed_body(entry, seq, prev_hash)
    return {
        "tenant_key": tenant_key,
        "seq": seq,
        "subject": entry.subject,
        "kind": entry.kind,
        "body": body,
        "key_id": "",
        "prev_hash": prev_hash,
        "hash": digest_of_bytes(body),
        "at": entry.at,
    }


async def heads(store: Store, *, skip_unreadable: bool = False) -> list[AuditHead]:
    """Return the newest entry of every chain: keep them elsewhere, `verify` asks for them.

    Args:
        store: where the chains are.
        skip_unreadable: leave out heads that cannot be read, which `verify` finds.

    Raises:
        StorageUnreadable: a head cannot be read.
    """
    query = select_raw(audit_heads, sqlite=store.is_sqlite)
    async with store.read() as connection:
        rows = (await connection.execute(query)).mappings().all()
    found = [decoded(audit_heads, row, sqlite=store.is_sqlite) for row in rows]
    readable = [row for row in found if UNREADABLE not in row.values()]
    if len(readable) != len(found) and not skip_unreadable:
        raise StorageUnreadable(EDITED_HEAD)
    newest = [
        AuditHead(tenant=r["tenant"], seq=r["seq"], hash=r["hash"]) for r in readable if r["seq"]
    ]
    return sorted(newest, key=lambda head: head.tenant)


async def _locked_head(connection: AsyncConnection, entry: AuditEntry) -> RowMapping:
    """Return what an entry follows on; nothing else of the head's row is read."""
    tenant_key = digest_of(entry.tenant)
    head = await _head(connection, tenant_key)
    if head is not None:
        if not isinstance(head["seq"], int) or not isinstance(head["hash"], str):
            raise StorageUnreadable(EDITED_HEAD)
        return head
    empty: dict[str, Any] = {
        "tenant_key": tenant_key,
        "tenant": entry.tenant,
        "seq": 0,
        "hash": "",
        "updated_at": entry.at,
    }
    await insert_first(connection, audit_heads, empty)
    head = await _head(connection, tenant_key)
    if head is None:
        raise StorageUnavailable("the audit chain has no head: nothing was written")
    return head


async def _head(connection: AsyncConnection, tenant_key: str) -> RowMapping | None:
    return (await connection.execute(_LOCKED_HEAD, {"of": tenant_key})).mappings().first()


def _hashed_body(entry: AuditEntry, seq: int, prev_hash: str) -> bytes:
    return canonical_json(
        {
            "tenant": entry.tenant,
            "seq": seq,
            "at": entry.at.isoformat(),
            "kind": entry.kind,
            "subject": entry.subject,
            "prev_hash": prev_hash,
            "details": dict(entry.details),
        }
    )
