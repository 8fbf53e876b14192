"""Lists the ledger for people: a row that cannot be read is named and does not hide the others.

Why it exists: whoever looks at the ledger after somebody edited it by hand needs all of it. What
acts on a row reads it the strict way (`Ledger.get`) and fails instead.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import or_, select

from triage.contracts.canonical import digest_of
from triage.storage.engine import Store
from triage.storage.ledger_rows import to_record, unreadable_named
from triage.storage.operations import OperationRecord
from triage.storage.raw import UNREADABLE, decoded, select_raw
from triage.storage.schema import operations
from triage.storage.transitions import OperationState

LIMIT: Final = 1000
MOST_NAMED: Final = 10


@dataclass(frozen=True)
class UnreadableOperation:
    """A row of the ledger that is no operation.

    Attributes:
        operation_key: the ledger's key; None if that cannot be read either.
        columns: the columns whose values are none that the ledger writes.
    """

    operation_key: str | None
    columns: tuple[str, ...]


async def list_readable(
    store: Store, *, attention_only: bool = False
) -> tuple[OperationRecord | UnreadableOperation, ...]:
    """Return operations, oldest first, at most `LIMIT`, with the rows that are none.

    The JSON of a record's target is known to be an object, and its labels to be texts.
    """
    o = operations.c
    query = select_raw(operations, sqlite=store.is_sqlite)
    query = query.order_by(o.created_at, o.operation_key).limit(LIMIT)
    if attention_only:
        query = query.where(o.attention_at.is_not(None))
    async with store.read() as connection:
        found = (await connection.execute(query)).mappings().all()
    rows = (decoded(operations, row, sqlite=store.is_sqlite) for row in found)
    return tuple(record_of(row) for row in rows)


async def named(
    store: Store,
    operation_id: str,
    workflow_ids: Collection[str] | None,
    version: int | None = None,
) -> tuple[OperationRecord, ...]:
    """Return the operations of an id, oldest first, at most `MOST_NAMED`.

    Args:
        store: where they are.
        operation_id: as their runs call them, or the key of one.
        workflow_ids: only those of these runs.
        version: only those at this one.

    Raises:
        StorageUnreadable: somebody edited one of the rows.
    """
    o = operations.c
    query = select(operations).order_by(o.created_at, o.operation_key).limit(MOST_NAMED)
    query = query.where(or_(o.operation_id == operation_id, o.operation_key == operation_id))
    if workflow_ids is not None:
        query = query.where(o.workflow_key.in_([digest_of(one) for one in workflow_ids]))
    if version is not None:
        query = query.where(o.version == version)
    async with store.read() as connection:
        with unreadable_named():
            found = (await connection.execute(query)).mappings().all()
            return tuple(to_record(row) for row in found)


def record_of(row: dict[str, Any]) -> OperationRecord | UnreadableOperation:
    """Return a decoded row as an operation, or as one that cannot be read."""
    columns = tuple(_unreadable(row))
    if not columns:
        return to_record(row)
    key = row["operation_key"]
    return UnreadableOperation(key if isinstance(key, str) else None, columns)


def _unreadable(row: Mapping[str, Any]) -> list[str]:
    named = [name for name, value in row.items() if value is UNREADABLE]
    target, labels = _json(row["target"]), _json(row["labels"])
    checks = {
        "target": isinstance(target, dict),
        "labels": isinstance(labels, list) and all(isinstance(label, str) for label in labels),
        "state": row["state"] in tuple(OperationState),
    }
    return [*named, *(name for name, holds in checks.items() if not holds and name not in named)]


def _json(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
