"""How many people approved a write, by the trail alone, and the use of their approval.

Why it exists: a run counts approvals until there are enough of them, and a run may be forged. Each
signed approval is on the audit trail when it was verified, so the ledger can count for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam, select

from triage.contracts.canonical import digest_of
from triage.storage.approvals import (
    ApprovalRow,
    RefusalCode,
    Verdict,
    approvals_told,
    consume,
    find_approval,
)
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.operations import OperationRecord
from triage.storage.schema import audit

# Built once, since to build a statement takes longer than to run it.
_CHAINS: Final = select(audit.c.tenant_key).where(audit.c.subject == bindparam("of")).distinct()


async def use_approvals(
    connection: AsyncConnection, record: OperationRecord, needed: int, now: datetime
) -> RefusalCode | None:
    """Use the approval of an operation, if so many different people gave one.

    Returns:
        None when it was used; otherwise why not.
    """
    if needed > 1:
        stands = await find_approval(connection, record.operation_key, record.version)
        if stands is None or len(await approvers_of(connection, stands)) < needed:
            return RefusalCode.TOO_FEW
    return await consume(connection, record.operation_key, record.digest, record.version, now)


async def approvers_of(connection: AsyncConnection, stands: ApprovalRow) -> frozenset[str]:
    """Return who approved exactly what the decision that stands is about, by their stable ids."""
    return frozenset(await signers_of(connection, stands))


async def signers_of(
    connection: AsyncConnection, stands: ApprovalRow
) -> Mapping[str, frozenset[str | None]]:
    """Return them with the ids of the keys that signed; None where that is not on the trail."""
    found: dict[str, frozenset[str | None]] = {}
    for one in await _same_as(connection, stands):
        who, key = str(one["approver"]), one.get("key_id")
        found[who] = found.get(who, frozenset()) | {key if isinstance(key, str) else None}
    return found


async def is_held_by(store: Store, operation_key: str, tenant: str) -> bool:
    """Whether all that the trail tells of an operation is in this tenant's chain.

    An operation that nothing is told of is held by nobody yet.
    """
    async with store.read() as connection:
        chains = set((await connection.execute(_CHAINS, {"of": operation_key})).scalars())
    return chains <= {digest_of(tenant)}


async def consents_to(store: Store, decision: ApprovalRow) -> frozenset[str]:
    """Return who agreed to exactly what a decision is about, in the same form, and still does.

    Signed consents count beside a signed decision alone, and one that has expired counts for none.
    """
    form = decision.source.value
    async with store.read() as connection:
        now = await store.now(connection)
        found = await _same_as(connection, decision)
    return frozenset(
        str(one["approver"])
        for one in found
        if one.get("source") == form and _is_after(one.get("expires_at"), now)
    )


async def _same_as(connection: AsyncConnection, decision: ApprovalRow) -> list[Mapping[str, Any]]:
    same = (decision.version, decision.digest, decision.operation_digest, Verdict.APPROVE.value)
    found = await approvals_told(connection, decision.operation_key)
    return [one for one in found if _said(one) == same]


def _is_after(told: object, now: datetime) -> bool:
    """Whether a time that an entry names is still to come; one that cannot be read is not."""
    try:
        return isinstance(told, str) and datetime.fromisoformat(told) > now
    except (ValueError, TypeError):
        return False


def _said(details: Mapping[str, Any]) -> tuple[object, ...]:
    names = ("version", "digest", "operation_digest", "verdict")
    return tuple(details.get(name) for name in names)
