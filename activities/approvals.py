"""Verifies signed approvals, and keeps the decision that stands.

Why it exists: verifying needs keys and the time, which no workflow may look at. So it is an
activity: its answer is in the history, its keys never are, and a key that is retired later cannot
break a replay. A token is used up here, when its decision is recorded, before anybody acts on it.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Final

from temporalio import activity

from activities.services import Services
from triage.contracts.approval import Verdict
from triage.contracts.canonical import short_hash
from triage.contracts.covering import operation_digest
from triage.contracts.logins import folded
from triage.contracts.names import ACTIVITY_VERIFY_APPROVAL
from triage.contracts.payloads import Operation
from triage.contracts.verification import VerifyRequest, VerifyResult
from triage.faults import Point, reach
from triage.signing.files import KeyringFile
from triage.signing.keys import Keyring, KeyringError
from triage.signing.refusals import Detail, Refusal
from triage.signing.tokens import Statement, VerifiedApproval, audience, verify
from triage.storage import approvals as stored
from triage.storage.approvals import ApprovalRow, Approvals, ApprovalSource
from triage.storage.engine import Store
from triage.storage.operations import operation_key
from triage.storage.vouchers import Voucher

ACCEPTED: Final = "accepted"
NOT_ITSELF: Final = "the operation is not what its digest says"


class ApprovalActivities:
    """Answers whether a signed approval counts.

    Args:
        store: keeps the decisions, and its clock is the one that tokens are held to.
        keyring: the keys that count, as they are at each question.
        skew: how far a signer's clock may be ahead.
    """

    def __init__(
        self, store: Store, keyring: KeyringFile, *, skew: timedelta = timedelta(0)
    ) -> None:
        self._store = store
        self._approvals = Approvals(store)
        self._keyring = keyring
        self._skew = skew

    @activity.defn(name=ACTIVITY_VERIFY_APPROVAL)
    async def verify(self, request: VerifyRequest) -> VerifyResult:
        """Verify a signed approval and record it as the decision, unless another one stands.

        One that does not decide, since others have to agree, is put on the audit trail only.

        The caller has seen that the run waits for this operation and that this approver may decide
        on it; both are looked at again afterwards. Asking the same again gets the same answer until
        the decision has been used for a write.

        Raises:
            StorageError: the decision could not be recorded; nothing is known of it.
        """
        checked = await self._checked(request)
        if isinstance(checked, Refusal):
            activity.logger.warning("a signed approval was refused: %s", checked.detail.value)
            return VerifyResult(
                accepted=False, code=checked.code.value, detail=checked.detail.value
            )
        return checked

    async def _checked(self, request: VerifyRequest) -> VerifyResult | Refusal:
        keyring = await self._keys()
        if keyring is None:
            return Refusal(Detail.KEYRING_UNUSABLE)
        async with self._store.read() as connection:
            now = await self._store.now(connection)
        verified = verify(request.token, keyring, _expected(request), now, skew=self._skew)
        if isinstance(verified, Refusal):
            return verified
        if (wrong := _wrong_person(request, verified, keyring)) is not None:
            return Refusal(wrong)
        row, voucher = _row(request, verified), _voucher(request, verified)
        reach(Point.VERIFY_BEFORE_RECORD)
        if not request.decides:
            await self._approvals.note(row, request.tenant, voucher, key_id=verified.kid)
            return _accepted(verified, row)
        stands = await self._approvals.record(row, request.tenant, voucher, key_id=verified.kid)
        reach(Point.VERIFY_AFTER_RECORD)
        if stands is None:
            return Refusal(Detail.TOKEN_REPLAYED)
        detail = why_not(stands, row)
        return Refusal(detail) if detail else _accepted(verified, stands)

    async def _keys(self) -> Keyring | None:
        try:
            return await asyncio.to_thread(self._keyring.load)
        except KeyringError as error:
            activity.logger.error("no signed approval can be verified: %s", error)
            return None


def _wrong_person(
    request: VerifyRequest, verified: VerifiedApproval, keyring: Keyring
) -> Detail | None:
    """Say why this person may not decide, by whatever name; None if they may.

    A run knows names only. The ring knows who has several.
    """
    names = {folded(e.approver) for e in keyring.entries if e.subject == verified.subject}
    if not names.isdisjoint(map(folded, request.barred)):
        return Detail.BARRED_PERSON
    again = verified.verdict is Verdict.APPROVE and verified.subject in request.subjects
    return Detail.SAME_PERSON if again else None


def is_itself(operation: Operation) -> bool:
    """Whether an operation is what its digest says, which is what people approve.

    Whoever reaches the server may name an operation that was approved, and mean other labels.
    """
    target = operation.target.model_dump(mode="json")
    return operation.digest == operation_digest(operation.tool, target, operation.labels)


async def is_signed(services: Services, key: str, version: int) -> bool:
    """Whether a signed decision on an operation is on record, where nothing else counts.

    Whoever reaches the server may ask for a write and say anything of who approved it: only the
    activity above records a signed decision.
    """
    if services.local_trust:
        return True
    stands = await Approvals(services.store).get(key, version)
    return stands is not None and stands.source is ApprovalSource.TOKEN


def why_not(stands: ApprovalRow, row: ApprovalRow) -> Detail | None:
    """Say why the decision that stands is not `row`'s, or None if it is the same answer (pure).

    Two people may give the same answer: the first one's stands, and it is the second one's too. A
    token whose own decision has been used for a write was used before.
    """
    if stands.token_id == row.token_id and stands.consumed_at is not None:
        return Detail.TOKEN_REPLAYED
    said = (row.verdict, row.digest, row.operation_digest)
    if (stands.verdict, stands.digest, stands.operation_digest) != said:
        return Detail.DECIDED_OTHERWISE
    return None if stands.revoked_at is None else Detail.REVOKED


def _expected(request: VerifyRequest) -> Statement:
    info = activity.info()
    return Statement(
        audience=audience(info.namespace),
        workflow_id=info.workflow_id or "",
        operation_id=request.operation_id,
        version=request.version,
        digest=request.approval_digest,
        verdict=request.verdict,
        approver=request.approver,
        scope=request.scope,
    )


def _row(request: VerifyRequest, verified: VerifiedApproval) -> ApprovalRow:
    key = operation_key(request.scope, request.operation_id)
    return ApprovalRow(
        approval_id=short_hash(key, str(request.version)),
        scope=request.scope,
        operation_key=key,
        operation_id=request.operation_id,
        version=request.version,
        digest=request.approval_digest,
        operation_digest=request.operation_digest,
        verdict=stored.Verdict(verified.verdict.value),
        approver=verified.subject,
        source=ApprovalSource.TOKEN,
        token_id=verified.token_id,
        expires_at=datetime.fromisoformat(request.use_by) if request.use_by else None,
    )


def _voucher(request: VerifyRequest, verified: VerifiedApproval) -> Voucher | None:
    """Return whose rights the write has to look at again: an approval by a service's word."""
    if verified.vouched is None or verified.verdict is not Verdict.APPROVE:
        return None
    return Voucher(
        operation_key=operation_key(request.scope, request.operation_id),
        version=request.version,
        tracker=verified.vouched.tracker,
        person_id=verified.subject,
        login=verified.vouched.login,
    )


def _accepted(verified: VerifiedApproval, stands: ApprovalRow) -> VerifyResult:
    return VerifyResult(
        accepted=True,
        code=ACCEPTED,
        approver=verified.approver,
        token_id=verified.token_id,
        subject=verified.subject,
        expires_at=stands.expires_at.isoformat() if stands.expires_at else None,
    )
