"""Holds the ledger against its trail: each operation stands where its last entry left it.

Why it exists: the chain shows that nobody edited the trail, and says nothing of the rows that it
tells of. A row that was moved by hand, taken out or put in is found here, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from triage.contracts.canonical import digest_of, digest_of_bytes
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.ledger_rows import content_digest
from triage.storage.raw import UNREADABLE, decoded, select_raw
from triage.storage.schema import approvals, operations
from triage.storage.transitions import OperationState

_PAGE: Final = 500
_HELD: Final = ("scope", "workflow_id", "operation_id", "version", "digest")
_APPROVED: Final = ("approval_id", "digest", "operation_digest", "verdict", "approver", "source")
_PREFIX: Final = "operation."
_NO_ENTRY: Final = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
_Row = Mapping[str, Any]


class Difference(StrEnum):
    """How a row and its trail differ."""

    STATE = "state_differs"
    """The row is in another state than its last entry says."""
    EPOCH = "epoch_differs"
    """The row has another epoch than its last entry says."""
    CONTENT = "content_differs"
    """The row is about something else than its entries, or its receipt is another one."""
    APPROVAL = "approval_differs"
    """An approval is not what the entry that recorded it says, or one of the two is missing."""
    VOUCHER = "voucher_differs"
    """Who was vouched for is not what the entry says, or one of the two is missing."""
    ACCEPTANCE = "acceptance_differs"
    """Accepted rules are not what the entry says, or one of the two is missing."""
    SWITCH = "switch_differs"
    """A stop switch does not stand as its last entry says, or one of the two is missing."""
    TOMBSTONE = "tombstone_differs"
    """What is left of a purged write is not what the entry says, or one of the two is missing."""
    UNAUDITED = "unaudited"
    """No entry tells of the row, or the last one says that it was purged."""
    MISSING = "row_missing"
    """Entries tell of a row that is not there, and none says that it was purged."""
    UNREADABLE = "row_unreadable"
    """The row cannot be read, so it cannot be compared."""


@dataclass(frozen=True, kw_only=True)
class LedgerFinding:
    """One row that is not where its trail says; `seq` is its last entry, 0 if there is none.

    `operation_key` is empty where even that cannot be read, or no operation has a part in it.
    """

    tenant_key: str
    seq: int
    code: Difference
    operation_key: str


@dataclass(slots=True)
class _Told:
    """Where an operation stands by its entries so far."""

    tenant_key: str
    seq: int
    state: str
    epoch: int | None
    details: Mapping[str, Any]


class LedgerTrail:
    """What the entries say of each operation; give it all of them, each chain in its order."""

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}
        self._approvals: dict[tuple[object, object], tuple[_Row, Mapping[str, Any]]] = {}

    def add(self, entry: _Row) -> None:
        """Take in one decoded row of the audit table; entries about other things are left out."""
        kind, key = entry["kind"], entry["subject"]
        if kind == "approval.recorded":
            details = _details(entry)
            self._approvals[key, details.get("version")] = entry, details
        if not isinstance(kind, str) or not isinstance(key, str) or not kind.startswith(_PREFIX):
            return
        what, before = kind.removeprefix(_PREFIX), self._told.get(key)
        if what == "purged":
            self._told.pop(key, None)
            return
        self._told[key] = _Told(
            tenant_key=str(entry["tenant_key"]),
            seq=entry["seq"] if isinstance(entry["seq"], int) else 0,
            state=_state_after(before.state if before else "", what),
            epoch=_epoch(entry) if what in tuple(OperationState) or not before else before.epoch,
            details={**(before.details if before else {}), **_details(entry)},
        )

    async def differences(self, store: Store, connection: AsyncConnection) -> list[LedgerFinding]:
        """Compare with the rows that `connection` sees; call it once, after all entries."""
        found: list[LedgerFinding] = []
        query = select_raw(operations, sqlite=store.is_sqlite)
        async with connection.stream(query, execution_options={"yield_per": _PAGE}) as result:
            async for row in result.mappings():
                found += self._compare(decoded(operations, row, sqlite=store.is_sqlite))
        found += [
            LedgerFinding(
                tenant_key=told.tenant_key,
                seq=told.seq,
                code=Difference.MISSING,
                operation_key=key,
            )
            for key, told in self._told.items()
        ]
        query = select_raw(approvals, sqlite=store.is_sqlite)
        async with connection.stream(query, execution_options={"yield_per": _PAGE}) as result:
            async for row in result.mappings():
                found += self._compare_approval(decoded(approvals, row, sqlite=store.is_sqlite))
        found += [_approval_finding(entry) for entry, _ in self._approvals.values()]
        return sorted(found, key=lambda one: (one.tenant_key, one.seq, one.operation_key))

    def _compare_approval(self, row: _Row) -> list[LedgerFinding]:
        entry, details = self._approvals.pop((row["operation_key"], row["version"]), (row, {}))
        is_same = all(row[name] == details.get(name) for name in _APPROVED)
        return [] if is_same and _holds(row, details) else [_approval_finding(entry)]

    def _compare(self, row: _Row) -> list[LedgerFinding]:
        key = row["operation_key"] if isinstance(row["operation_key"], str) else ""
        told = self._told.pop(key, None)
        codes = [*_codes(row, told)]
        tenant_key = told.tenant_key if told else _tenant_key(row)
        seq = told.seq if told else 0
        return [
            LedgerFinding(tenant_key=tenant_key, seq=seq, code=code, operation_key=key)
            for code in codes
        ]


def _holds(row: _Row, details: Mapping[str, Any]) -> bool:
    """Whether an approval ends when its entry says, and is of its token, with its note."""
    # Older entries do not say all of it, and what they do not say is not compared.
    same = all(row[name] == details.get(name, row[name]) for name in ("token_id", "note_digest"))
    ends = row["expires_at"]
    return same and ends == _instant(details.get("expires_at", ends))


def _instant(told: object) -> object:
    """Return the time that an entry tells, or what else it says."""
    try:
        return datetime.fromisoformat(told) if isinstance(told, str) else told
    except ValueError:
        return told


def _approval_finding(found: _Row) -> LedgerFinding:
    """Name the entry, or the row that has none."""
    seq, key = found.get("seq"), found.get("subject", found.get("operation_key"))
    return LedgerFinding(
        tenant_key=str(found.get("tenant_key", "")),
        seq=seq if isinstance(seq, int) else 0,
        code=Difference.APPROVAL,
        operation_key=key if isinstance(key, str) else "",
    )


def _codes(row: _Row, told: _Told | None) -> list[Difference]:
    if any(row[name] is UNREADABLE for name in ("operation_key", "state", "epoch")):
        return [Difference.UNREADABLE]
    if told is None:
        return [Difference.UNAUDITED]
    differs = {
        Difference.STATE: row["state"] != told.state,
        Difference.EPOCH: told.epoch is not None and row["epoch"] != told.epoch,
        Difference.CONTENT: not _is_told(row, told),
    }
    return [code for code, is_so in differs.items() if is_so]


def _is_told(row: _Row, told: _Told) -> bool:
    """Whether a row is about what its entries say; what they do not say is not compared."""
    compared = ("operation_type", "target", "arguments", "labels", "receipt", "receipt_digest")
    if any(row[name] is UNREADABLE for name in (*_HELD, *compared)):
        return False
    if _tenant_key(row) != told.tenant_key or row["workflow_key"] != digest_of(row["workflow_id"]):
        return False
    receipt = row["receipt"]
    seen = {name: row[name] for name in _HELD} | {
        "content": content_digest(row),
        "receipt_digest": None if receipt is None else digest_of_bytes(receipt),
    }
    if seen["receipt_digest"] != row["receipt_digest"]:
        return False
    known = {name: told.details.get(name, seen[name]) for name in seen}
    return known == seen and ("receipt_digest" in told.details or receipt is None)


def _details(entry: _Row) -> Mapping[str, Any]:
    try:
        details = json.loads(entry["body"])["details"]
    except _NO_ENTRY:
        return {}
    return details if isinstance(details, dict) else {}


def _state_after(before: str, what: str) -> str:
    """Return the state after an entry: one that names no state moves nothing.

    Nor does telling a person of a write that failed.
    """
    if what not in tuple(OperationState):
        return before
    is_failed = before == OperationState.FAILED
    return before if is_failed and what == OperationState.ATTENTION else what


def _epoch(entry: _Row) -> int | None:
    epoch = _details(entry).get("epoch")
    return epoch if isinstance(epoch, int) else None


def _tenant_key(row: _Row) -> str:
    return digest_of(row["tenant"]) if isinstance(row["tenant"], str) else ""
