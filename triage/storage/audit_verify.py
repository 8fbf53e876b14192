"""Reads every audit chain again and says where it does not hold.

What it can show: an entry that was edited, moved or taken out, and a tail that was cut off or
written anew, if a head was kept elsewhere. Without such a head, no chain shows a missing tail.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sqlalchemy import select
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from triage.contracts.canonical import digest_of, digest_of_bytes
from triage.storage.audit import AuditHead
from triage.storage.engine import Store
from triage.storage.schema import audit, audit_heads

_PAGE: Final = 500


class FindingCode(StrEnum):
    """What is wrong with a chain."""

    EDITED = "edited"
    """An entry's content does not have the hash that stands beside it."""
    GAP = "gap"
    """Entries are missing before this one."""
    BROKEN_LINK = "broken_link"
    """An entry does not follow from the one before it."""
    HEAD_MISMATCH = "head_mismatch"
    """The chain's own head is missing or does not name its last entry."""
    TRUNCATED = "truncated"
    """The chain ends before the head that was kept elsewhere."""
    REWRITTEN = "rewritten"
    """Where the head that was kept elsewhere points, another entry stands."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One fault: in which chain (`tenant_key` is ``digest_of(tenant)``), at which entry."""

    tenant_key: str
    seq: int
    code: FindingCode


async def verify(store: Store, external_heads: Sequence[AuditHead] = ()) -> list[Finding]:
    """Check every chain, and each against the head that was kept elsewhere.

    Args:
        store: where the chains are.
        external_heads: what `heads` answered at some earlier time, kept outside this database.

    Returns:
        Every fault found; an empty list means that the chains hold.
    """
    kept = {digest_of(head.tenant): head for head in external_heads}
    async with store.snapshot() as connection:
        own = await _own_heads(connection)
        known = (await connection.scalars(select(audit.c.tenant_key).distinct())).all()
        findings: list[Finding] = []
        for tenant_key in sorted({*known, *own, *kept}):
            chain = _Chain(tenant_key, kept.get(tenant_key))
            async for row in _entries(connection, tenant_key):
                chain.add(row)
            findings += chain.finish(own.get(tenant_key))
    return findings


async def _own_heads(connection: AsyncConnection) -> dict[str, RowMapping]:
    rows = (await connection.execute(select(audit_heads))).mappings().all()
    return {row["tenant_key"]: row for row in rows}


async def _entries(connection: AsyncConnection, tenant_key: str) -> AsyncIterator[RowMapping]:
    last: int | None = None
    while True:
        query = select(audit).where(audit.c.tenant_key == tenant_key).order_by(audit.c.seq)
        if last is not None:
            query = query.where(audit.c.seq > last)
        page = (await connection.execute(query.limit(_PAGE))).mappings().all()
        for row in page:
            yield row
        if len(page) < _PAGE:
            return
        last = page[-1]["seq"]


class _Chain:
    """One chain while it is read, oldest entry first."""

    def __init__(self, tenant_key: str, kept: AuditHead | None) -> None:
        self._tenant_key = tenant_key
        self._kept = kept
        self._seq = 0
        self._hash = ""
        self._findings: list[Finding] = []

    def add(self, row: RowMapping) -> None:
        """Hold the next entry against the one before it."""
        if row["seq"] != self._seq + 1:
            self._find(row["seq"], FindingCode.GAP)
        elif row["prev_hash"] != self._hash:
            self._find(row["seq"], FindingCode.BROKEN_LINK)
        if not _is_itself(row):
            self._find(row["seq"], FindingCode.EDITED)
        if self._kept and row["seq"] == self._kept.seq and row["hash"] != self._kept.hash:
            self._find(row["seq"], FindingCode.REWRITTEN)
        self._seq, self._hash = row["seq"], row["hash"]

    def finish(self, own_head: RowMapping | None) -> list[Finding]:
        """Hold the end of the chain against both heads."""
        seq, hash_ = (own_head["seq"], own_head["hash"]) if own_head else (0, "")
        if (seq, hash_) != (self._seq, self._hash):
            self._find(self._seq, FindingCode.HEAD_MISMATCH)
        if self._kept and self._seq < self._kept.seq:
            self._find(self._seq, FindingCode.TRUNCATED)
        return self._findings

    def _find(self, seq: int, code: FindingCode) -> None:
        self._findings.append(Finding(tenant_key=self._tenant_key, seq=seq, code=code))


def _is_itself(row: RowMapping) -> bool:
    """Whether the hash covers the content, and the columns repeat what the content says."""
    if row["hash"] != digest_of_bytes(row["body"]):
        return False
    try:
        body = json.loads(row["body"])
        same = all(body[name] == row[name] for name in ("seq", "kind", "subject", "prev_hash"))
        at = row["at"].isoformat()
        return same and body["at"] == at and digest_of(body["tenant"]) == row["tenant_key"]
    except (ValueError, TypeError, KeyError):
        return False
