"""Rows that the tests of the store begin from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update

from triage.contracts.canonical import canonical_json, digest_of
from triage.storage.approvals import ApprovalRow, ApprovalSource, Verdict
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.operations import OperationRecord, OperationRow, Reservation, Reserved
from triage.storage.schema import approvals, audit, operations
from triage.storage.transitions import OperationState

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
RECEIPT = b'{"applied_by_us":true,"labels":["bug"]}'


def operation(
    key: str = "op_1",
    labels: tuple[str, ...] = ("bug",),
    **changes: Any,  # noqa: ANN401 - any field's value
) -> OperationRow:
    """A write that adds `labels` to one issue."""
    target = {"issue": "ISSUE-101"}
    arguments = {"labels": list(labels)}
    row = OperationRow(
        operation_key=key,
        scope="5c0fe" * 6,
        tenant="default",
        workflow_id="triage-101",
        operation_id="op-105",
        version=3,
        operation_type="apply_labels",
        digest=digest_of(["apply_labels", target, arguments]),
        target=canonical_json(target).decode(),
        arguments=canonical_json(arguments).decode(),
        labels=labels,
    )
    return replace(row, **changes)


def approval(
    row: OperationRow,
    **changes: Any,  # noqa: ANN401 - any field's value
) -> ApprovalRow:
    """A reviewer's approval of exactly `row`."""
    given = ApprovalRow(
        approval_id=f"approval-{row.operation_key}-{row.version}",
        scope=row.scope,
        operation_key=row.operation_key,
        operation_id=row.operation_id,
        version=row.version,
        digest=digest_of([row.digest, row.version]),
        operation_digest=row.digest,
        verdict=Verdict.APPROVE,
        approver="maintainer",
        source=ApprovalSource.SIGNAL,
    )
    return replace(given, **changes)


def record(
    state: OperationState,
    **changes: Any,  # noqa: ANN401 - any field's value
) -> OperationRecord:
    """A ledger row in `state`, dispatched long before `NOW` if that state implies it."""
    long_ago = NOW - timedelta(days=1)
    possible = state not in {OperationState.RESERVED, OperationState.CANCELLED}
    found = OperationRecord(
        **vars(operation()),
        state=state,
        epoch=1,
        owner="attempt-1",
        lease_until=long_ago,
        not_before=None,
        dispatched_at=long_ago if possible else None,
        dispatches=1 if possible else 0,
        read_back_at=NOW if state is OperationState.RECONCILED_ABSENT else None,
        receipt=RECEIPT,
        receipt_digest=None,
        reason=None,
        attention_owner=None,
        attention_at=None,
        created_at=long_ago,
        updated_at=long_ago,
    )
    return replace(found, **changes)


def reserved(answer: Reservation) -> Reserved:
    """See that a claim was granted, and return what it got."""
    assert isinstance(answer, Reserved), answer
    return answer


async def claim(ledger: Ledger, row: OperationRow, owner: str | None = None) -> Reservation:
    """Claim `row` with an approval of exactly it."""
    return await ledger.reserve(row, approval(row), owner=owner)


async def dispatched(ledger: Ledger, row: OperationRow) -> int:
    """Bring `row` to where an effect is possible, and return its epoch."""
    epoch = reserved(await claim(ledger, row)).epoch
    moved = await ledger.dispatch(row.operation_key, epoch)
    assert moved, moved
    return epoch


@dataclass(frozen=True)
class Counts:
    """How many rows some tables have."""

    operations: int
    approvals: int
    audit: int


async def counts(store: Store) -> Counts:
    """Count the rows of the tables that a claim writes."""
    async with store.read() as connection:
        found = [
            (await connection.execute(select(func.count()).select_from(table))).scalar_one()
            for table in (operations, approvals, audit)
        ]
    return Counts(*found)


async def shift(store: Store, column: str, by: timedelta, key: str = "op_1") -> None:
    """Move a time of a ledger row: how a test makes time pass."""
    c = operations.c[column]
    async with store.write() as connection:
        query = select(c).where(operations.c.operation_key == key)
        moment = (await connection.execute(query)).scalar_one()
        await connection.execute(
            update(operations)
            .where(operations.c.operation_key == key)
            .values({column: moment + by})
        )
