"""What the ledger is told of a write: its row, its approval and its evidence. Pure."""

from __future__ import annotations

from datetime import datetime

from activities.receipts import receipt_evidence
from triage.contracts.canonical import canonical_json, digest_of_bytes, short_hash
from triage.contracts.payloads import WriteRequest
from triage.storage.approvals import ApprovalRow, ApprovalSource, Verdict
from triage.storage.evidence import EvidenceRow
from triage.storage.operations import OperationRow, operation_key


def key_of(request: WriteRequest) -> str:
    """Return the ledger's key of a write."""
    return operation_key(request.scope, request.operation.operation_id)


def operation_row(request: WriteRequest, workflow_id: str) -> OperationRow:
    """Return the ledger's row of a write."""
    operation = request.operation
    return OperationRow(
        operation_key=key_of(request),
        scope=request.scope,
        tenant=request.tenant,
        workflow_id=workflow_id,
        operation_id=operation.operation_id,
        version=operation.version,
        operation_type=operation.tool,
        digest=operation.digest,
        target=canonical_json(operation.target.model_dump(mode="json")).decode(),
        arguments=canonical_json(list(operation.labels)).decode(),
        labels=operation.labels,
    )


def approval_row(request: WriteRequest) -> ApprovalRow:
    """Return the decision that a write rests on."""
    operation, approval = request.operation, request.approval
    key = key_of(request)
    expires_at = approval.expires_at
    return ApprovalRow(
        approval_id=short_hash(key, str(operation.version)),
        scope=request.scope,
        operation_key=key,
        operation_id=operation.operation_id,
        version=operation.version,
        digest=operation.approval_digest,
        operation_digest=operation.digest,
        verdict=Verdict.APPROVE,
        approver=approval.approver,
        source=ApprovalSource(approval.source),
        decided_at=datetime.fromisoformat(approval.decided_at),
        expires_at=datetime.fromisoformat(expires_at) if expires_at else None,
    )


def receipt_row(request: WriteRequest, receipt: bytes, expires_at: datetime) -> EvidenceRow:
    """Return the receipt as a row of the evidence store."""
    operation = request.operation
    evidence = receipt_evidence(request, digest_of_bytes(receipt), len(receipt))
    arguments = {"issue_id": operation.target.issue, "labels": list(operation.labels)}
    return EvidenceRow(
        scope=request.scope,
        version=operation.version,
        evidence_id=evidence.id,
        tool=evidence.tool,
        arguments=canonical_json(arguments),
        source=evidence.source,
        locator=evidence.locator,
        digest=evidence.digest,
        content=receipt,
        call=short_hash(operation.operation_id, operation.digest),
        size_bytes=evidence.size_bytes,
        expires_at=expires_at,
    )
