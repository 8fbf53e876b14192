"""How the ledger's rows are read and moved: each move a compare-and-set, audited with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from typing import Any, Final

from pydantic import JsonValue
from sqlalchemy import Select, bindparam, select, update
from sqlalchemy.engine import RowMapping

from triage.contracts.canonical import digest_of
from triage.storage.audit import AuditEntry, append
from triage.storage.connections import AsyncConnection
from triage.storage.errors import StorageUnavailable, StorageUnreadable
from triage.storage.operations import OperationRecord, OperationRow, Settled
from triage.storage.raw import misfits
from triage.storage.rows import first_row
from triage.storage.schema import operation_tombstones, operations
from triage.storage.transitions import OperationState, may_move

EDITED: Final = (
    "a row of the ledger cannot be read, since somebody edited it: 'triage operations' names it, "
    "and 'triage audit verify' the trail that tells its moves"
)
_UNREADABLE: Final = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


# Built once, since to build a statement takes longer than to run it.
_O: Final = operations.c
_OPERATION: Final = select(operations).where(_O.operation_key == bindparam("of"))
_LOCKED: Final = _OPERATION.with_for_update()
_MOVE: Final = update(operations).where(
    _O.operation_key == bindparam("of"),
    _O.epoch == bindparam("held"),
    _O.state == bindparam("from"),
)
_TOMBSTONE: Final = select(operation_tombstones).where(
    operation_tombstones.c.operation_key == bindparam("of")
)


async def unlocked(connection: AsyncConnection, operation_key: str) -> OperationRecord | None:
    """Return an operation as it is now.

    Raises:
        StorageUnreadable: somebody edited its row.
    """
    return await read_one(connection, _OPERATION, {"of": operation_key})


async def locked(connection: AsyncConnection, operation_key: str) -> OperationRecord | None:
    """Return an operation and lock its row until the transaction ends."""
    return await read_one(connection, _LOCKED, {"of": operation_key})


async def read_one(
    connection: AsyncConnection, query: Select[Any], values: Mapping[str, str] | None = None
) -> OperationRecord | None:
    """Return the first operation that `query` selects with `values`, or None.

    Raises:
        StorageUnreadable: somebody edited its row.
    """
    with unreadable_named():
        found = (await connection.execute(query, values)).mappings().first()
        return None if found is None else to_record(found)


@contextmanager
def unreadable_named() -> Iterator[None]:
    """Turn what reading an edited row raises, of many kinds, into one error.

    Raises:
        StorageUnreadable: in its place.
    """
    try:
        yield
    except _UNREADABLE:
        raise StorageUnreadable(EDITED) from None


async def purged(connection: AsyncConnection, operation_key: str) -> tuple[str, Settled] | None:
    """Return the digest and the answer that are left of a purged operation."""
    found = await first_row(connection, _TOMBSTONE, {"of": operation_key})
    if found is None:
        return None
    answer = Settled(
        state=OperationState(found["state"]),
        receipt=None,
        receipt_digest=found["receipt_digest"],
        purged=True,
    )
    return found["digest"], answer


async def move(
    connection: AsyncConnection,
    record: OperationRecord,
    target: OperationState,
    now: datetime,
    values: Mapping[str, Any],
) -> None:
    """Move a locked row to `target`, provided it is still what `record` says, and audit it.

    Raises:
        ValueError: the table of moves has no such move.
        StorageUnavailable: the row was moved by somebody else all the same.
    """
    if not may_move(record.state, target):
        raise ValueError(f"no move leads from {record.state} to {target}")
    was = {"of": record.operation_key, "held": record.epoch, "from": record.state}
    moved = {**values, "state": target, "updated_at": now}
    changed = await connection.execute(_MOVE, was | moved)
    if changed.rowcount != 1:
        raise StorageUnavailable("the operation moved under its lock: nothing was written")
    epoch = values.get("epoch", record.epoch)
    await audit_move(connection, record, target, now, {**_told(values), "epoch": epoch})


async def flag(
    connection: AsyncConnection, record: OperationRecord, now: datetime, values: Mapping[str, Any]
) -> None:
    """Mark a locked row for a person's attention without moving it, and audit that."""
    await connection.execute(
        update(operations)
        .where(operations.c.operation_key == record.operation_key)
        .values(**values, updated_at=now)
    )
    details = {**_told(values), "epoch": record.epoch}
    await audit_move(connection, record, OperationState.ATTENTION, now, details)


async def audit_move(
    connection: AsyncConnection,
    row: OperationRow,
    target: OperationState,
    now: datetime,
    details: Mapping[str, JsonValue],
) -> None:
    """Append the audit entry of a move."""
    await append(connection, move_entry(row, target, now, details))


def move_entry(
    row: OperationRow, target: OperationState, now: datetime, details: Mapping[str, JsonValue]
) -> AuditEntry:
    """Return the audit entry of a move."""
    told = {
        "scope": row.scope,
        "workflow_id": row.workflow_id,
        "operation_id": row.operation_id,
        "version": row.version,
        "digest": row.digest,
        "content": content_digest(vars(row) | {"labels": json.dumps(list(row.labels))}),
        **details,
    }
    return AuditEntry(
        tenant=row.tenant,
        kind=f"operation.{target}",
        subject=row.operation_key,
        at=now,
        details=told,
    )


def content_digest(values: Mapping[str, Any]) -> str:
    """Return a digest of what an operation does, by the columns of its row."""
    names = ("operation_type", "target", "arguments", "labels")
    return digest_of([values[name] for name in names])


def _told(values: Mapping[str, Any]) -> dict[str, JsonValue]:
    names = ("version", "owner", "receipt_digest", "reason", "attention_owner")
    return {name: values[name] for name in names if name in values}


def to_values(row: OperationRow) -> dict[str, Any]:
    """The columns that describe the operation itself."""
    values = {field.name: getattr(row, field.name) for field in fields(OperationRow)}
    values["labels"] = json.dumps(list(row.labels))
    values["workflow_key"] = digest_of(row.workflow_id)
    return values


def to_record(found: RowMapping | Mapping[str, Any]) -> OperationRecord:
    """A database row as the ledger's own record.

    Raises:
        StorageUnreadable: a column holds what the ledger never writes there.
    """
    values = dict(found)
    if misfits(operations, values):
        raise StorageUnreadable(EDITED)
    with unreadable_named():
        return _to_record(values)


def _to_record(values: dict[str, Any]) -> OperationRecord:
    del values["workflow_key"]
    values["labels"] = tuple(json.loads(values["labels"]))
    values["state"] = OperationState(values["state"])
    return OperationRecord(**values)
