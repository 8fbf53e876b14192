"""`triage operations`: the writes of the ledger, whatever became of them."""

from __future__ import annotations

import json

from pydantic import JsonValue

from triage.cli.errors import RefusedError
from triage.cli.output import Format, put_json, put_table, say
from triage.cli.running import run
from triage.cli.stores import open_store, place
from triage.cli.times import told
from triage.storage.ledger_listing import UnreadableOperation, list_readable
from triage.storage.operations import OperationRecord

_HEADERS = ("OPERATION", "RUN", "STATE", "TARGET", "LABELS", "UPDATED", "KEY", "REASON")
NONE_YET = "there are no operations yet"
_ATTENTION_HEADERS = ("OWNER",)
_EDITED = (
    "somebody edited the database: 'triage audit verify' checks the trail that tells the moves"
)

_Operation = OperationRecord | UnreadableOperation


def list_operations(*, attention_only: bool, format_: Format) -> None:
    """Print the operations, oldest first; one that cannot be read hides no other.

    Raises:
        RefusedError: there is no database; or rows cannot be read, and all were printed first.
        StorageError: the database cannot be used.
    """
    found = run(_found(attention_only=attention_only))
    if format_ is Format.JSON:
        put_json([_as_json(record) for record in found])
    elif found:
        put_table(
            (*_HEADERS, *(_ATTENTION_HEADERS if attention_only else ())),
            [_cells(record, attention=attention_only) for record in found],
        )
    else:
        say(f"{'no operation needs a person' if attention_only else NONE_YET} in {place()}")
    unreadable = sum(isinstance(record, UnreadableOperation) for record in found)
    if unreadable:
        raise RefusedError(f"the ledger has rows that cannot be read (rows: {unreadable})", _EDITED)


async def _found(*, attention_only: bool) -> tuple[_Operation, ...]:
    async with open_store(create=False) as store:
        return await list_readable(store, attention_only=attention_only)


def _as_json(record: _Operation) -> dict[str, JsonValue]:
    if isinstance(record, UnreadableOperation):
        return {"operation_key": record.operation_key, "error": _what(record)}
    return {
        "operation_key": record.operation_key,
        "operation_id": record.operation_id,
        "workflow_id": record.workflow_id,
        "state": record.state.value,
        "epoch": record.epoch,
        "version": record.version,
        "digest": record.digest,
        "target": json.loads(record.target),
        "labels": list(record.labels),
        "reason": record.reason,
        "receipt": _receipt(record.receipt),
    }


def _receipt(receipt: bytes | None) -> JsonValue:
    """Return a receipt's document; one that is no JSON is shown as text."""
    if receipt is None:
        return None
    try:
        document: JsonValue = json.loads(receipt)
    except ValueError:
        return receipt.decode(errors="replace")
    return document


def _what(record: UnreadableOperation) -> str:
    return f"cannot be read: {', '.join(record.columns)}"


def _cells(record: _Operation, *, attention: bool) -> tuple[str, ...]:
    if isinstance(record, UnreadableOperation):
        cells = ("unreadable", "", _what(record), "", "", "", record.operation_key or "", "")
        return (*cells, "") if attention else cells
    target = json.loads(record.target)
    place = f"{target.get('repository')}#{target.get('issue')}"
    owner = (record.attention_owner or "",) if attention else ()
    return (
        f"{record.operation_id}@{record.version}",
        record.workflow_id,
        record.state.value,
        place,
        ", ".join(record.labels),
        told(record.updated_at),
        record.operation_key,
        record.reason or "",
        *owner,
    )
