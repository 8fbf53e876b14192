"""Reads every audit chain again and says where it does not hold.

What it can show: an entry that was edited, moved or taken out, and a tail that was cut off or
written anew, if a head was kept elsewhere. Without such a head, no chain shows a missing tail.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from triage.contracts.canonical import digest_of, digest_of_bytes
from triage.storage.audit import AuditHead
from triage.storage.audit_ledger import LedgerFinding, LedgerTrail
from triage.storage.audit_records import RecordTrail
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.raw import UNREADABLE, decoded, select_raw
from triage.storage.schema import audit, audit_heads

_PAGE: Final = 500
_NO_ENTRY: Final = (ValueError, TypeError, KeyError, RecursionError)
_Row = Mapping[str, Any]


class FindingCode(StrEnum):
    """What is wrong with a chain."""

    EDITED = "edited"
    """An entry's content does not have the hash that stands beside it, or cannot be read."""
    GAP = "gap"
    """Entries are missing before this one."""
    BROKEN_LINK = "broken_link"
    """An entry does not follow from the one before it."""
    HEAD_MISMATCH = "head_mismatch"
    """The chain's own head is missing, cannot be read, or does not name its last entry."""
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


async def verify(
    store: Store, external_heads: Sequence[AuditHead] = ()
) -> list[Finding | LedgerFinding]:
    """Check every chain, each against the head that was kept elsewhere, and the rows by them.

    Args:
        store: where the chains are.
        external_heads: what `heads` answered at some earlier time, kept outside this database.

    Returns:
        Every fault found; an empty list means that the chains hold, and that each operation,
        voucher, acceptance, switch and tombstone stands where its last entry left it.
    """
    kept = {digest_of(head.tenant): head for head in external_heads}
    async with store.snapshot() as connection:
        own = await _own_heads(store, connection)
        chains = {key: _Chain(key, kept.get(key)) for key in {*own, *kept}}
        trail, records = LedgerTrail(), RecordTrail()
        async for row in _entries(store, connection):
            key = _key(row)
            chains.setdefault(key, _Chain(key, kept.get(key))).add(row)
            trail.add(row)
            records.add(row)
        differences = await trail.differences(store, connection)
        differences += await records.differences(store, connection)
    findings: list[Finding | LedgerFinding] = []
    for key in sorted(chains):
        findings += chains[key].finish(own.get(key))
    return [*findings, *differences]


async def _own_heads(store: Store, connection: AsyncConnection) -> dict[str, _Row]:
    query = select_raw(audit_heads, sqlite=store.is_sqlite)
    rows = (await connection.execute(query)).mappings().all()
    found = (decoded(audit_heads, row, sqlite=store.is_sqlite) for row in rows)
    return {_key(row): row for row in found}


async def _entries(store: Store, connection: AsyncConnection) -> AsyncIterator[_Row]:
    """Yield every chain's entries, one chain after the other, each by number."""
    query = select_raw(audit, sqlite=store.is_sqlite).order_by(audit.c.tenant_key, audit.c.seq)
    # Streamed, not paged: a number that is none cannot be asked for.
    async with connection.stream(query, execution_options={"yield_per": _PAGE}) as result:
        async for row in result.mappings():
            yield decoded(audit, row, sqlite=store.is_sqlite)


def _key(row: _Row) -> str:
    """Return whose row it is; all rows that do not say so stand together."""
    key = row["tenant_key"]
    return key if isinstance(key, str) else ""


class _Chain:
    """One chain while it is read, oldest entry first."""

    def __init__(self, tenant_key: str, kept: AuditHead | None) -> None:
        self._tenant_key = tenant_key
        self._kept = kept
        self._seq = 0
        self._hash = ""
        self._findings: list[Finding] = []

    def add(self, row: _Row) -> None:
        """Hold the next entry against the one before it."""
        if row["seq"] is UNREADABLE:
            # It has no place in the chain; its content may say which one it had.
            self._find(_told_seq(row, self._seq + 1), FindingCode.EDITED)
            return
        if row["seq"] != self._seq + 1:
            self._find(row["seq"], FindingCode.GAP)
        elif row["prev_hash"] != self._hash:
            self._find(row["seq"], FindingCode.BROKEN_LINK)
        if not _is_itself(row):
            self._find(row["seq"], FindingCode.EDITED)
        if self._kept and row["seq"] == self._kept.seq and row["hash"] != self._kept.hash:
            self._find(row["seq"], FindingCode.REWRITTEN)
        self._seq, self._hash = row["seq"], row["hash"]

    def finish(self, own_head: _Row | None) -> list[Finding]:
        """Hold the end of the chain against both heads."""
        seq, hash_ = (own_head["seq"], own_head["hash"]) if own_head else (0, "")
        is_edited = own_head is not None and not _is_own_head(own_head)
        if is_edited or (seq, hash_) != (self._seq, self._hash):
            self._find(self._seq, FindingCode.HEAD_MISMATCH)
        if self._kept and self._seq < self._kept.seq:
            self._find(self._seq, FindingCode.TRUNCATED)
        return self._findings

    def _find(self, seq: int, code: FindingCode) -> None:
        self._findings.append(Finding(tenant_key=self._tenant_key, seq=seq, code=code))


def _is_own_head(head: _Row) -> bool:
    """Whether a head can be read and names the tenant whose it is."""
    if UNREADABLE in head.values():
        return False
    return bool(digest_of(head["tenant"]) == head["tenant_key"])


def _told_seq(row: _Row, otherwise: int) -> int:
    """Return the number that an entry's content gives it."""
    try:
        seq = json.loads(row["body"])["seq"]
    except _NO_ENTRY:
        return otherwise
    return seq if isinstance(seq, int) else otherwise


def _is_itself(row: _Row) -> bool:
    """Whether the hash covers the content, and the columns repeat what the content says."""
    if UNREADABLE in row.values() or row["hash"] != digest_of_bytes(row["body"]):
        return False
    try:
        body = json.loads(row["body"])
        same = all(body[name] == row[name] for name in ("seq", "kind", "subject", "prev_hash"))
        at = row["at"].isoformat()
        return same and body["at"] == at and digest_of(body["tenant"]) == row["tenant_key"]
    except _NO_ENTRY:
        return False
