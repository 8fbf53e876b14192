"""What reviewers decided, and the one use of each approval.

Why it exists: a signal only wakes a run up; the row here is the authority. The first decision on an
operation at a version stands. An approval is used up in the transaction that makes an effect
possible, and the same write may lean on it again only while it still holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import bindparam, func, or_, select, update
from sqlalchemy.engine import RowMapping

from triage.storage.audit import AuditEntry, append
from triage.storage.columns import UtcDateTime
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.rows import first_row, insert_first
from triage.storage.schema import approvals, audit
from triage.storage.vouchers import Voucher, keep_voucher

_KINDS: Final = ("approval.counted", "approval.recorded")
_NO_ENTRY: Final = (ValueError, TypeError, KeyError, RecursionError)


class Verdict(StrEnum):
    """What a reviewer said."""

    APPROVE = "approve"
    REJECT = "reject"


class ApprovalSource(StrEnum):
    """How a decision arrived."""

    START = "start"
    SIGNAL = "signal"
    UPDATE = "update"
    TOKEN = "token"  # noqa: S105 - the name of a way in, not a secret


class RefusalCode(StrEnum):
    """Why an approval does not allow a write."""

    REJECTED = "rejected"
    DIGEST_MISMATCH = "digest_mismatch"
    EXPIRED = "expired"
    REVOKED = "revoked"
    CONSUMED = "consumed"
    TOKEN_REPLAYED = "token_replayed"  # noqa: S105 - a code, not a secret
    MISSING = "missing"
    TOO_FEW = "too_few"
    """The rules want more people than have approved it."""


@dataclass(frozen=True, kw_only=True)
class ApprovalRow:
    """One decision on one operation at one version.

    Attributes:
        approval_id: a name of its own.
        scope: the run's scope.
        operation_key: the ledger's key; stands for scope and operation id.
        operation_id: the operation's name inside its run.
        version: the version of the run that was reviewed.
        digest: over everything the reviewer saw.
        operation_digest: the ledger's digest of the operation.
        verdict: what was said.
        approver: who said it.
        source: how it arrived.
        token_id: the single-use id of a signed approval, if it was one.
        note_digest: of the reviewer's note, whose text is not kept here.
        decided_at: the database's time unless given.
        expires_at: from when on it allows nothing; None means never.
        revoked_at: set by the store.
        consumed_by: the operation key that used it; set by the store.
        consumed_at: set by the store.
    """

    approval_id: str
    scope: str
    operation_key: str
    operation_id: str
    version: int
    digest: str
    operation_digest: str
    verdict: Verdict
    approver: str
    source: ApprovalSource
    token_id: str | None = None
    note_digest: str | None = None
    decided_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    consumed_by: str | None = None
    consumed_at: datetime | None = None


# Built once, since to build a statement takes longer than to run it.
_A: Final = approvals.c
_NOW: Final = bindparam("now", type_=UtcDateTime())
_MINE: Final = (_A.operation_key == bindparam("of"), _A.version == bindparam("at"))
_DECISION: Final = select(approvals).where(*_MINE)
_CONSUME: Final = (
    update(approvals)
    .where(
        *_MINE,
        _A.operation_digest == bindparam("doing"),
        _A.verdict == Verdict.APPROVE,
        _A.revoked_at.is_(None),
        or_(_A.expires_at.is_(None), _A.expires_at > _NOW),
        or_(_A.consumed_by.is_(None), _A.consumed_by == bindparam("of")),
    )
    .values(consumed_by=bindparam("of"), consumed_at=func.coalesce(_A.consumed_at, _NOW))
)


class Approvals:
    """Decisions, kept: the first one on an operation at a version stands."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def record(
        self,
        row: ApprovalRow,
        tenant: str,
        voucher: Voucher | None = None,
        *,
        key_id: str | None = None,
    ) -> ApprovalRow | None:
        """Keep a decision, in a transaction of its own, with who was vouched for, if anybody was.

        The trail has the `key_id` of a signed one, too: it has to count when the write is sent.

        Returns:
            The decision that stands, which may be an earlier one; None when the token was used for
            another operation before.
        """
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            stands = await keep_first(connection, row, tenant, now, key_id=key_id)
            if stands is not None and (stands.verdict, stands.digest) == (row.verdict, row.digest):
                await _keep_voucher(connection, voucher, tenant, now)
            return stands

    async def note(
        self,
        row: ApprovalRow,
        tenant: str,
        voucher: Voucher | None = None,
        *,
        key_id: str | None = None,
    ) -> None:
        """Put one approval of several on the audit trail: it allows nothing by itself."""
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            entry = _recorded(replace(row, decided_at=now), tenant, now, key_id)
            await append(connection, replace(entry, kind="approval.counted"))
            await _keep_voucher(connection, voucher, tenant, now)

    async def get(self, operation_key: str, version: int) -> ApprovalRow | None:
        """Return the decision on an operation at a version, if there is one."""
        async with self._store.read() as connection:
            return await find_approval(connection, operation_key, version)

    async def by_token(self, token_id: str) -> ApprovalRow | None:
        """Return the decision that a signed approval's single-use id became, if it became one."""
        query = select(approvals).where(approvals.c.token_id == token_id)
        async with self._store.read() as connection:
            found = await first_row(connection, query)
        return None if found is None else _to_row(found)

    async def is_counted(self, operation_key: str, version: int, token_id: str) -> bool:
        """Whether the trail has a signed approval as one of several, by its single-use id."""
        async with self._store.read() as connection:
            told = await approvals_told(connection, operation_key)
        said = (version, token_id, Verdict.APPROVE.value)
        return any(said == tuple(map(one.get, ("version", "token_id", "verdict"))) for one in told)


async def _keep_voucher(
    connection: AsyncConnection, voucher: Voucher | None, tenant: str, now: datetime
) -> None:
    if voucher is None or not await keep_voucher(connection, voucher, now):
        return
    entry = AuditEntry(
        tenant=tenant,
        kind="approval.vouched",
        subject=voucher.operation_key,
        at=now,
        details={
            "version": voucher.version,
            "tracker": voucher.tracker,
            "person_id": voucher.person_id,
        },
    )
    await append(connection, entry)


async def keep_first(
    connection: AsyncConnection,
    row: ApprovalRow,
    tenant: str,
    now: datetime,
    *,
    key_id: str | None = None,
) -> ApprovalRow | None:
    """Do what `Approvals.record` does, in the caller's transaction."""
    stands, entry = await decide_first(connection, row, tenant, now, key_id=key_id)
    if entry is not None:
        await append(connection, entry)
    return stands


async def decide_first(
    connection: AsyncConnection,
    row: ApprovalRow,
    tenant: str,
    now: datetime,
    *,
    key_id: str | None = None,
) -> tuple[ApprovalRow | None, AuditEntry | None]:
    """Do what `keep_first` does, and leave it to the caller to append the entry.

    Returns:
        The decision that stands, if there is one, and the entry if it is new.
    """
    new = replace(
        row,
        decided_at=row.decided_at or now,
        revoked_at=None,
        consumed_by=None,
        consumed_at=None,
    )
    values = {field.name: getattr(new, field.name) for field in fields(new)}
    if await insert_first(connection, approvals, values):
        return new, _recorded(new, tenant, now, key_id)
    return await find_approval(connection, row.operation_key, row.version), None


def refusal_of(
    stands: ApprovalRow | None, operation_key: str, operation_digest: str, now: datetime
) -> RefusalCode | None:
    """Say why a decision does not allow this operation now, or None if it does (pure).

    Args:
        stands: the decision on this operation at the version in question, if there is one.
        operation_key: the operation that wants to happen.
        operation_digest: what it would do: the ledger's digest.
        now: the database's time.
    """
    if stands is None:
        return RefusalCode.MISSING
    if stands.verdict is not Verdict.APPROVE:
        return RefusalCode.REJECTED
    if (stands.operation_key, stands.operation_digest) != (operation_key, operation_digest):
        return RefusalCode.DIGEST_MISMATCH
    if stands.revoked_at is not None:
        return RefusalCode.REVOKED
    if stands.consumed_by not in {None, operation_key}:
        return RefusalCode.CONSUMED
    if stands.expires_at is not None and stands.expires_at <= now:
        return RefusalCode.EXPIRED
    return None


async def consume(
    connection: AsyncConnection,
    operation_key: str,
    operation_digest: str,
    version: int,
    now: datetime,
) -> RefusalCode | None:
    """Use the approval of an operation at a version; one statement decides.

    Returns:
        None when it was used, now or before, by this very operation; otherwise why not.
    """
    which = {"of": operation_key, "doing": operation_digest, "at": version, "now": now}
    used = await connection.execute(_CONSUME, which)
    if used.rowcount == 1:
        return None
    stands = await find_approval(connection, operation_key, version)
    return refusal_of(stands, operation_key, operation_digest, now) or RefusalCode.MISSING


async def find_approval(
    connection: AsyncConnection, operation_key: str, version: int
) -> ApprovalRow | None:
    """Return the decision on an operation at a version, in the caller's transaction."""
    found = await first_row(connection, _DECISION, {"of": operation_key, "at": version})
    return None if found is None else _to_row(found)


async def approvals_told(
    connection: AsyncConnection, operation_key: str
) -> list[Mapping[str, Any]]:
    """Return what the trail says of each approval of an operation, in the caller's transaction."""
    query = select(audit.c.body).where(audit.c.subject == operation_key, audit.c.kind.in_(_KINDS))
    return [*map(_approval_in, (await connection.execute(query)).scalars().all())]


def _approval_in(body: bytes) -> Mapping[str, Any]:
    """Return the details of an entry; of one that cannot be read, none."""
    try:
        details = json.loads(body)["details"]
    except _NO_ENTRY:
        return {}
    return details if isinstance(details, dict) and "approver" in details else {}


def _to_row(found: RowMapping) -> ApprovalRow:
    values = dict(found)
    values["verdict"] = Verdict(values["verdict"])
    values["source"] = ApprovalSource(values["source"])
    return ApprovalRow(**values)


def _recorded(
    row: ApprovalRow, tenant: str, now: datetime, key_id: str | None = None
) -> AuditEntry:
    return AuditEntry(
        tenant=tenant,
        kind="approval.recorded",
        subject=row.operation_key,
        at=now,
        details={
            "approval_id": row.approval_id,
            "version": row.version,
            "digest": row.digest,
            "operation_digest": row.operation_digest,
            "verdict": row.verdict,
            "approver": row.approver,
            "source": row.source,
            "key_id": key_id,
            "token_id": row.token_id,
            "note_digest": row.note_digest,
            "expires_at": row.expires_at.isoformat() if row.expires_at else None,
        },
    )
