"""Small records that the tests of the pure workflow modules share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from triage.contracts.approval import Review, Verdict
from triage.contracts.payloads import EvidenceRef
from triage.contracts.state import PendingView

DEADLINE = datetime(2030, 1, 2, 12, 0, tzinfo=UTC)
IN_TIME = DEADLINE - timedelta(microseconds=1)
DIGEST = "sha256:" + "1" * 64
OTHER_DIGEST = "sha256:" + "2" * 64


def a_review(
    operation_id: str = "op-105",
    version: int = 3,
    approver: str = "ann",
    digest: str | None = None,
    verdict: Verdict = Verdict.APPROVE,
) -> Review:
    """Return a review that counts for `a_pending_view`, unless told otherwise."""
    return Review(
        operation_id=operation_id,
        version=version,
        approver=approver,
        digest=digest,
        verdict=verdict,
    )


def a_pending_view(operation_id: str = "op-105", version: int = 3) -> PendingView:
    """Return a pending operation with `DIGEST`, to be decided before `DEADLINE`."""
    return PendingView(
        operation_id=operation_id,
        version=version,
        tool="apply_labels",
        target={"tracker": "local", "repository": "local", "issue": "ISSUE-105"},
        arguments={"issue_id": "ISSUE-105", "labels": ["bug"]},
        digest=DIGEST,
        labels_before=(),
        labels_after=("bug",),
        proposed_by="model",
        proposed_at=(DEADLINE - timedelta(hours=72)).isoformat(),
        expires_at=DEADLINE.isoformat(),
    )


def some_evidence(evidence_id: str, size_bytes: int = 0) -> EvidenceRef:
    """Return evidence of this id."""
    return EvidenceRef(
        id=evidence_id,
        tool="lookup_component_owner",
        source="local",
        locator=f"rules#{evidence_id}",
        digest=DIGEST,
        size_bytes=size_bytes,
    )
