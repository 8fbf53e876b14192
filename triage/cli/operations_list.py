"""`triage operations`: the writes of the ledger, whatever became of them."""

from __future__ import annotations

import json

from pydantic import JsonValue

from triage.cli.output import Format, put_json, put_table, say
from triage.cli.running import run
from triage.cli.stores import open_store, place
from triage.cli.times import told
from triage.storage.ledger import Ledger
from triage.storage.operations import OperationRecord

_HEADERS = ("OPERATION", "RUN", "STATE", "TARGET", "LABELS", "UPDATED", "KEY")
NONE_YET = "there are no operations yet"
_ATTENTION_HEADERS = ("REASON", "OWNER")


def list_operations(*, attention_only: bool, format_: Format) -> None:
    """Print the operations, oldest first.

    Raises:
        RefusedError: there is no database.
        StorageError: the database cannot be used.
    """
    records = run(_records(attention_only=attention_only))
    if format_ is Format.JSON:
        put_json([_as_json(record) for record in records])
    elif records:
        put_table(
            (*_HEADERS, *(_ATTENTION_HEADERS if attention_only else ())),
            [_cells(record, attention=attention_only) for record in records],
        )
    else:
        say(f"{'no operation needs a person' if attention_only else NONE_YET} in {place()}")


async def _records(*, attention_only: bool) -> tuple[OperationRecord, ...]:
    async with open_store(create=False) as store:
        return await Ledger(store).list(attention_only=attention_only)


def _as_json(record: OperationRecord) -> dict[str, JsonValue]:
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


def _cells(record: OperationRecord, *, attention: bool) -> tuple[str, ...]:
    target = json.loads(record.target)
    place = f"{target.get('repository')}#{target.get('issue')}" if isinstance(target, dict) else ""
    why = (record.reason or "", record.attention_owner or "") if attention else ()
    return (
        f"{record.operation_id}@{record.version}",
        record.workflow_id,
        record.state.value,
        place,
        ", ".join(record.labels),
        told(record.updated_at),
        record.operation_key,
        *why,
    )
