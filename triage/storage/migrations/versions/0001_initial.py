"""The first schema: ledger, approvals, evidence, documents, audit, admission, local tracker."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table."""
    _operations()
    _operation_tombstones()
    _approvals()
    _evidence()
    _documents()
    _audit()
    _audit_heads()
    _requests()
    _deliveries()
    _tracker_issues()
    _tracker_labels()
    _tracker_issue_labels()
    _tracker_events()


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _maybe_text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=True)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), autoincrement=False, nullable=False)


def _big_number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def _binary(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary(), nullable=False)


def _maybe_binary(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary(), nullable=True)


def _time(name: str) -> sa.Column[datetime]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def _maybe_time(name: str) -> sa.Column[datetime]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=True)


def _operations() -> None:
    op.create_table(
        "operations",
        _text("operation_key"),
        _text("scope"),
        _text("tenant"),
        _text("workflow_id"),
        _text("workflow_key"),
        _text("operation_id"),
        _number("version"),
        _text("operation_type"),
        _text("digest"),
        _text("target"),
        _text("arguments"),
        _text("labels"),
        _text("state"),
        _number("epoch"),
        _text("owner"),
        _time("lease_until"),
        _maybe_time("not_before"),
        _maybe_time("dispatched_at"),
        _number("dispatches"),
        _maybe_time("read_back_at"),
        _maybe_binary("receipt"),
        _maybe_text("receipt_digest"),
        _maybe_text("reason"),
        _maybe_text("attention_owner"),
        _maybe_time("attention_at"),
        _time("created_at"),
        _time("updated_at"),
        sa.CheckConstraint(
            "state IN ('reserved', 'cancelled') OR dispatched_at IS NOT NULL",
            name=op.f("ck_operations_effect_was_dispatched"),
        ),
        sa.CheckConstraint(
            "state IN ('reserved', 'dispatched', 'applied', 'failed', 'unknown', "
            "'reconciled_applied', 'reconciled_absent', 'attention', 'cancelled')",
            name=op.f("ck_operations_state_known"),
        ),
        sa.CheckConstraint(
            "state NOT IN ('applied', 'reconciled_applied') OR receipt IS NOT NULL",
            name=op.f("ck_operations_applied_has_receipt"),
        ),
        sa.CheckConstraint("dispatches >= 0", name=op.f("ck_operations_dispatches_counted")),
        sa.CheckConstraint("epoch >= 1", name=op.f("ck_operations_epoch_positive")),
        sa.CheckConstraint("length(receipt) <= 4096", name=op.f("ck_operations_receipt_small")),
        sa.PrimaryKeyConstraint("operation_key", name=op.f("pk_operations")),
    )
    op.create_index(op.f("ix_operations_attention_at"), "operations", ["attention_at"])
    op.create_index(op.f("ix_operations_state_lease_until"), "operations", ["state", "lease_until"])
    op.create_index(op.f("ix_operations_workflow_key"), "operations", ["workflow_key"])


def _operation_tombstones() -> None:
    op.create_table(
        "operation_tombstones",
        _text("operation_key"),
        _text("digest"),
        _text("state"),
        _maybe_text("receipt_digest"),
        _time("purged_at"),
        sa.CheckConstraint(
            "state IN ('applied', 'failed', 'reconciled_applied', 'cancelled')",
            name=op.f("ck_operation_tombstones_state_known"),
        ),
        sa.PrimaryKeyConstraint("operation_key", name=op.f("pk_operation_tombstones")),
    )


def _approvals() -> None:
    op.create_table(
        "approvals",
        _text("approval_id"),
        _text("scope"),
        _text("operation_key"),
        _text("operation_id"),
        _number("version"),
        _text("digest"),
        _text("operation_digest"),
        _text("verdict"),
        _text("approver"),
        _text("source"),
        _maybe_text("token_id"),
        _maybe_text("note_digest"),
        _time("decided_at"),
        _maybe_time("expires_at"),
        _maybe_time("revoked_at"),
        _maybe_text("consumed_by"),
        _maybe_time("consumed_at"),
        sa.CheckConstraint(
            "consumed_by IS NULL OR verdict = 'approve'",
            name=op.f("ck_approvals_rejection_unconsumed"),
        ),
        sa.CheckConstraint(
            "source IN ('start', 'signal', 'update', 'token')",
            name=op.f("ck_approvals_source_known"),
        ),
        sa.CheckConstraint(
            "verdict IN ('approve', 'reject')", name=op.f("ck_approvals_verdict_known")
        ),
        sa.CheckConstraint(
            "(consumed_by IS NULL) = (consumed_at IS NULL)",
            name=op.f("ck_approvals_consumption_complete"),
        ),
        sa.PrimaryKeyConstraint("approval_id", name=op.f("pk_approvals")),
        sa.UniqueConstraint(
            "operation_key", "version", name=op.f("uq_approvals_operation_key_version")
        ),
        sa.UniqueConstraint("token_id", name=op.f("uq_approvals_token_id")),
    )


def _evidence() -> None:
    op.create_table(
        "evidence",
        _text("scope"),
        _number("version"),
        _text("evidence_id"),
        _text("tool"),
        _binary("arguments"),
        _text("source"),
        _text("locator"),
        _text("digest"),
        _maybe_binary("content"),
        _big_number("size_bytes"),
        _text("key_id"),
        _time("created_at"),
        _maybe_time("expires_at"),
        _maybe_time("purged_at"),
        sa.CheckConstraint(
            "(content IS NULL) = (purged_at IS NOT NULL)",
            name=op.f("ck_evidence_content_or_purged"),
        ),
        sa.PrimaryKeyConstraint("scope", "version", name=op.f("pk_evidence")),
    )
    op.create_index(op.f("ix_evidence_expires_at"), "evidence", ["expires_at"])


def _documents() -> None:
    op.create_table(
        "documents",
        _text("scope"),
        _text("kind"),
        _text("digest"),
        _maybe_binary("body"),
        _big_number("size_bytes"),
        _text("key_id"),
        _time("created_at"),
        _maybe_time("expires_at"),
        _maybe_time("purged_at"),
        sa.CheckConstraint(
            "(body IS NULL) = (purged_at IS NOT NULL)", name=op.f("ck_documents_body_or_purged")
        ),
        sa.PrimaryKeyConstraint("scope", "kind", "digest", name=op.f("pk_documents")),
    )
    op.create_index(op.f("ix_documents_expires_at"), "documents", ["expires_at"])


def _audit() -> None:
    op.create_table(
        "audit",
        _text("tenant_key"),
        _big_number("seq"),
        _text("subject"),
        _text("kind"),
        _binary("body"),
        _text("key_id"),
        _text("prev_hash"),
        _text("hash"),
        _time("at"),
        sa.CheckConstraint("seq >= 1", name=op.f("ck_audit_seq_positive")),
        sa.PrimaryKeyConstraint("tenant_key", "seq", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_subject"), "audit", ["subject"])


def _audit_heads() -> None:
    op.create_table(
        "audit_heads",
        _text("tenant_key"),
        _text("tenant"),
        _big_number("seq"),
        _text("hash"),
        _time("updated_at"),
        sa.CheckConstraint("seq >= 0", name=op.f("ck_audit_heads_seq_counted")),
        sa.PrimaryKeyConstraint("tenant_key", name=op.f("pk_audit_heads")),
    )


def _requests() -> None:
    op.create_table(
        "requests",
        _text("request_key"),
        _maybe_text("semantic_key"),
        _text("tenant"),
        _text("source"),
        _text("repository"),
        _text("number"),
        _text("subject_key"),
        _text("content_digest"),
        _maybe_time("content_at"),
        _maybe_text("document_digest"),
        _maybe_text("workflow_id"),
        _maybe_text("run_id"),
        _text("state"),
        _number("attempts"),
        _maybe_time("next_attempt_at"),
        _maybe_text("code"),
        _time("created_at"),
        _time("updated_at"),
        sa.CheckConstraint(
            "state IN ('accepted', 'started', 'superseded', 'refused', 'failed')",
            name=op.f("ck_requests_state_known"),
        ),
        sa.PrimaryKeyConstraint("request_key", name=op.f("pk_requests")),
        sa.UniqueConstraint("semantic_key", name=op.f("uq_requests_semantic_key")),
    )
    op.create_index(
        op.f("ix_requests_state_next_attempt_at"), "requests", ["state", "next_attempt_at"]
    )
    op.create_index(op.f("ix_requests_subject_key"), "requests", ["subject_key"])


def _deliveries() -> None:
    op.create_table(
        "deliveries",
        _text("delivery_key"),
        _text("source"),
        _text("delivery_id"),
        _text("event"),
        _maybe_text("action"),
        _text("tenant"),
        _text("body_digest"),
        _text("state"),
        _maybe_text("code"),
        _maybe_text("request_key"),
        _number("times_seen"),
        _time("received_at"),
        _time("updated_at"),
        sa.CheckConstraint(
            "state IN ('received', 'admitted', 'ignored', 'refused')",
            name=op.f("ck_deliveries_state_known"),
        ),
        sa.PrimaryKeyConstraint("delivery_key", name=op.f("pk_deliveries")),
    )
    op.create_index(op.f("ix_deliveries_received_at"), "deliveries", ["received_at"])
    op.create_index(op.f("ix_deliveries_request_key"), "deliveries", ["request_key"])


def _tracker_issues() -> None:
    op.create_table(
        "tracker_issues",
        _text("issue_key"),
        _text("repository"),
        _text("repository_key"),
        _text("number"),
        _text("title"),
        _text("body"),
        _text("author"),
        _text("state"),
        sa.Column("locked", sa.Boolean(), nullable=False),
        _time("created_at"),
        _time("updated_at"),
        sa.CheckConstraint(
            "state IN ('open', 'closed')", name=op.f("ck_tracker_issues_state_known")
        ),
        sa.PrimaryKeyConstraint("issue_key", name=op.f("pk_tracker_issues")),
    )
    op.create_index(
        op.f("ix_tracker_issues_repository_key_created_at"),
        "tracker_issues",
        ["repository_key", "created_at"],
    )


def _tracker_labels() -> None:
    op.create_table(
        "tracker_labels",
        _text("label_key"),
        _text("repository_key"),
        _text("name"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("label_key", name=op.f("pk_tracker_labels")),
    )
    op.create_index(op.f("ix_tracker_labels_repository_key"), "tracker_labels", ["repository_key"])


def _tracker_issue_labels() -> None:
    op.create_table(
        "tracker_issue_labels",
        _text("issue_key"),
        _text("label_key"),
        _number("position"),
        _time("added_at"),
        sa.ForeignKeyConstraint(
            ["issue_key"],
            ["tracker_issues.issue_key"],
            name=op.f("fk_tracker_issue_labels_issue_key"),
        ),
        sa.ForeignKeyConstraint(
            ["label_key"],
            ["tracker_labels.label_key"],
            name=op.f("fk_tracker_issue_labels_label_key"),
        ),
        sa.PrimaryKeyConstraint("issue_key", "label_key", name=op.f("pk_tracker_issue_labels")),
    )


def _tracker_events() -> None:
    op.create_table(
        "tracker_events",
        _text("issue_key"),
        _number("seq"),
        _text("action"),
        _maybe_text("label"),
        _maybe_text("label_key"),
        _text("by"),
        _maybe_text("operation_key"),
        _time("at"),
        sa.CheckConstraint(
            "(label IS NULL) = (action IN ('created', 'edited'))",
            name=op.f("ck_tracker_events_label_where_it_belongs"),
        ),
        sa.CheckConstraint(
            "action IN ('created', 'edited', 'added', 'removed')",
            name=op.f("ck_tracker_events_action_known"),
        ),
        sa.ForeignKeyConstraint(
            ["issue_key"], ["tracker_issues.issue_key"], name=op.f("fk_tracker_events_issue_key")
        ),
        sa.PrimaryKeyConstraint("issue_key", "seq", name=op.f("pk_tracker_events")),
    )
