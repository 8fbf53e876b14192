"""The receipt of a run's write, and that receipt as evidence. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from triage.contracts.canonical import digest_of_bytes
from triage.contracts.payloads import EvidenceRef, WriteOutcome, WriteRequest, WriteResult
from triage.storage.receipts import How as How
from triage.storage.receipts import Receipt

RECEIPT_ID: Final = "mutation-receipt"


def write_receipt(
    request: WriteRequest,
    operation_key: str,
    *,
    epoch: int,
    how: How,
    before: Sequence[str],
    after: Sequence[str],
    request_id: str | None = None,
) -> bytes:
    """Return the receipt of what was asked for: see `Receipt.to_bytes`."""
    operation, approval = request.operation, request.approval
    receipt = Receipt(
        operation_key=operation_key,
        operation_id=operation.operation_id,
        version=operation.version,
        epoch=epoch,
        digest=operation.digest,
        issue=operation.target.issue,
        labels=operation.labels,
        how=how,
        before=before,
        after=after,
        policy=request.policy_digest,
        approver=approval.approver,
        approved_by=approval.source,
        approval_digest=operation.approval_digest,
        request_id=request_id,
    )
    return receipt.to_bytes()


def applied(request: WriteRequest, receipt: bytes, *, replayed: bool) -> WriteResult:
    """Return the answer that a write is done, by its receipt."""
    evidence = receipt_evidence(request, digest_of_bytes(receipt), len(receipt))
    return WriteResult(outcome=WriteOutcome.APPLIED, replayed=replayed, evidence=evidence)


def receipt_evidence(request: WriteRequest, digest: str, size_bytes: int = 0) -> EvidenceRef:
    """Return the receipt of this digest as evidence that a later decision may cite."""
    return EvidenceRef(
        id=RECEIPT_ID,
        tool=request.operation.tool,
        source="ledger",
        locator=f"ledger@{digest.removeprefix('sha256:')[:12]}",
        digest=digest,
        size_bytes=size_bytes,
        facts={},
    )
