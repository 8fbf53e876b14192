"""A run that waits for a person, as its state query tells it."""

from __future__ import annotations

from triage.contracts.payloads import NOT_PINNED
from triage.contracts.response import Status
from triage.contracts.state import EvidenceView, PendingView, SpentView, StateView

DIGEST = f"sha256:{'d' * 64}"


def pending_view(**changes: object) -> PendingView:
    """Return an operation that adds a label, with some fields changed."""
    view = PendingView(
        operation_id="op-6",
        version=6,
        tool="apply_labels",
        target={"tracker": "local", "repository": "local", "issue": "1"},
        arguments={"issue_id": "1", "labels": ["bug"]},
        digest=DIGEST,
        labels_before=("triage",),
        labels_after=("bug", "triage"),
        proposed_by="orchestrator",
        proposed_at="2026-01-31T12:00:00+00:00",
        expires_at="2126-01-31T12:00:00+00:00",
    )
    return view.model_copy(update=changes)


def state_view(pending: PendingView | None, *evidence: EvidenceView) -> StateView:
    """Return the state of a run that waits for `pending`, or for nothing."""
    return StateView(
        status=Status.TOOL_PENDING,
        version=6,
        steps=2,
        retries=0,
        tool_sequence=("lookup_component_owner", "apply_labels"),
        decisions=(),
        evidence=evidence,
        pending=pending,
        refusals=(),
        refusals_total=0,
        operations=(),
        spent=SpentView(tokens=0, cost_micros=0, seconds=0, evidence_bytes=0),
        provenance=NOT_PINNED,
        response=None,
    )


def evidence_view(**changes: object) -> EvidenceView:
    """Return a piece of evidence as a run tells it."""
    view = EvidenceView(
        id="owners-api",
        tool="lookup_component_owner",
        source="builtin",
        locator="builtin@02db005f4e56#owners-api",
        digest=DIGEST,
    )
    return view.model_copy(update=changes)
