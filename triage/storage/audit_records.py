"""Holds what allows or stops writes against the trail: vouchers, rules, switches and tombstones.

Why it exists: each of these rows decides over a write, and the chain says nothing of whether they
are still there. Without the voucher nobody's rights are asked for, without the switch writes go on,
and without the tombstone a write that was done long ago may be done again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Table

from triage.contracts.canonical import digest_of
from triage.storage.audit_ledger import Difference, LedgerFinding
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.raw import decoded, select_raw
from triage.storage.schema import acceptances, operation_tombstones, switches
from triage.storage.schema_intake import vouchers
from triage.storage.switches import EVERYBODY, switch_name

VOUCHED: Final = "approval.vouched"
ACCEPTED: Final = "rules.accepted"
PURGED: Final = "operation.purged"
_SWITCHED: Final = {"writes.stopped": True, "writes.allowed": False}
_CODES: Final = {
    vouchers.name: Difference.VOUCHER,
    acceptances.name: Difference.ACCEPTANCE,
    switches.name: Difference.SWITCH,
    operation_tombstones.name: Difference.TOMBSTONE,
}
_NO_ENTRY: Final = (ValueError, TypeError, KeyError, RecursionError)
_PAGE: Final = 500
_Row = Mapping[str, Any]
_Name = tuple[object, ...]


class RecordTrail:
    """What the entries say of such rows; give it all of them, each chain in its order."""

    def __init__(self) -> None:
        self._told: dict[str, dict[_Name, tuple[_Row, _Name]]] = {name: {} for name in _CODES}

    def add(self, entry: _Row) -> None:
        """Take in one decoded row of the audit table; entries about other things are left out."""
        kind, subject, at = entry["kind"], entry["subject"], entry["at"]
        if kind == VOUCHED:
            said = _said(entry, "version", "tracker", "person_id")
            self._tell(vouchers, (subject, *said), entry, ())
        elif kind == ACCEPTED:
            number = len(self._told[acceptances.name]) + 1
            told = (subject, *_said(entry, "replaces", "by"), at)
            self._tell(acceptances, (number,), entry, told)
        elif kind in _SWITCHED:
            told = (entry["tenant_key"], _SWITCHED[kind], *_said(entry, "by", "reason"), at)
            self._tell(switches, (subject,), entry, told)
        elif kind == PURGED:
            told = _said(entry, "digest", "state", "receipt_digest")
            self._tell(operation_tombstones, (subject,), entry, told)

    def _tell(self, table: Table, name: _Name, entry: _Row, told: _Name) -> None:
        self._told[table.name][name] = entry, told

    async def differences(self, store: Store, connection: AsyncConnection) -> list[LedgerFinding]:
        """Compare with the rows that `connection` sees; call it once, after all entries."""
        found: list[LedgerFinding] = []
        for table in (vouchers, acceptances, switches, operation_tombstones):
            query = select_raw(table, sqlite=store.is_sqlite)
            async with connection.stream(query, execution_options={"yield_per": _PAGE}) as result:
                async for raw in result.mappings():
                    row = decoded(table, raw, sqlite=store.is_sqlite)
                    found += self._compare(table, row)
            left = self._told[table.name].values()
            found += [_finding(table, entry) for entry, _ in left]
        return found

    def _compare(self, table: Table, row: _Row) -> Iterable[LedgerFinding]:
        name, seen = _SEEN[table.name](row)
        entry, told = self._told[table.name].pop(name, (None, None))
        if told != seen:
            yield _finding(table, entry or {}, row)


def _of_voucher(row: _Row) -> tuple[_Name, _Name]:
    return (row["operation_key"], row["version"], row["tracker"], row["person_id"]), ()


def _of_acceptance(row: _Row) -> tuple[_Name, _Name]:
    return (row["seq"],), (row["digest"], row["replaces"], row["by"], row["accepted_at"])


def _of_switch(row: _Row) -> tuple[_Name, _Name]:
    tenant, name = row["tenant"], row["name"]
    is_text = tenant is None or isinstance(tenant, str)
    if not is_text or switch_name(tenant) != name:
        return (name,), ()
    chain = digest_of(EVERYBODY if tenant is None else tenant)
    return (name,), (chain, row["stopped"], row["by"], row["reason"], row["changed_at"])


def _of_tombstone(row: _Row) -> tuple[_Name, _Name]:
    return (row["operation_key"],), (row["digest"], row["state"], row["receipt_digest"])


_SEEN: Final = {
    vouchers.name: _of_voucher,
    acceptances.name: _of_acceptance,
    switches.name: _of_switch,
    operation_tombstones.name: _of_tombstone,
}


def _finding(table: Table, entry: _Row, row: _Row | None = None) -> LedgerFinding:
    """Name the entry, or the row that has none."""
    seq, key = entry.get("seq"), entry.get("subject") or (row or {}).get("operation_key")
    is_about_one = table in (vouchers, operation_tombstones)
    return LedgerFinding(
        tenant_key=str(entry.get("tenant_key", "")),
        seq=seq if isinstance(seq, int) else 0,
        code=_CODES[table.name],
        operation_key=key if is_about_one and isinstance(key, str) else "",
    )


def _said(entry: _Row, *names: str) -> _Name:
    """Return what the details of an entry say; of one that cannot be read, nothing."""
    try:
        details = json.loads(entry["body"])["details"]
        said = tuple(details[name] for name in names)
    except _NO_ENTRY:
        return ()
    return said if all(isinstance(value, str | int | None) for value in said) else ()
