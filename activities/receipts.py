"""The receipt of a write: what was sent, what was seen, and on whose word. Pure.

A receipt is written once, stored as bytes and answered byte for byte to every repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from triage.contracts.canonical import canonical_json, digest_of_bytes
from triage.contracts.payloads import EvidenceRef, WriteRequest

RECEIPT_ID: Final = "mutation-receipt"
MAX_RECEIPT_BYTES: Final = 4_096

How = Literal["applied_by_us", "already_present", "readback", "removed_by_person"]


def write_receipt(
    request: WriteRequest,
    operation_key: str,
    *,
    epoch: int,
    how: How,
    before: Sequence[str],
    after: Sequence[str],
) -> bytes:
    """Return the receipt as canonical JSON of at most 4 KiB.

    Label sets that do not fit are given by their digest: the operation's own labels always stay.
    """
    receipt = {
        "operation_key": operation_key,
        "operation_id": request.operation.operation_id,
        "version": request.operation.version,
        "epoch": epoch,
        "digest": request.operation.digest,
        "issue_id": request.operation.target.issue,
        "labels": list(request.operation.labels),
        "applied": True,
        "how": how,
        "before": sorted(before),
        "after": sorted(after),
        "policy": request.policy_digest,
        "approval": {
            "approver": request.approval.approver,
            "source": request.approval.source,
            "digest": request.operation.approval_digest,
        },
    }
    for name in ("before", "after", "labels"):
        data = canonical_json(receipt)
        if len(data) <= MAX_RECEIPT_BYTES:
            return data
        receipt[name] = digest_of_bytes(canonical_json(receipt[name]))
    return canonical_json(receipt)


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
