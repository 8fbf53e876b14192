"""Every table of the store, on SQLite and PostgreSQL alike.

Why it exists: the shape is promised. Later versions add tables and columns that may be empty; they
do not change what a column means. A test holds this page against the migrations, both ways.

Text that comes from outside stands in `ExactText` columns. None of it is part of a key or an index:
keys are digests and ids of our own, since PostgreSQL refuses index entries over 2.7 KB.
Times are instants of the database's own clock. Sizes are in bytes.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from triage.storage import schema_intake as schema_intake
from triage.storage.columns import ExactText, UtcDateTime
from triage.storage.schema_base import metadata as metadata
from triage.storage.schema_base import one_of as _one_of
from triage.storage.transitions import OperationState

REVISIONS: Final = ("0001", "0002", "0003", "0004", "0005", "0006", "0007")
"""The schema's revisions, oldest first; the last is the one that this program works with."""

MAX_RECEIPT_BYTES: Final = 4096

operations: Final = Table(
    "operations",
    metadata,
    Column("operation_key", Text, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("tenant", ExactText, nullable=False),
    Column("workflow_id", ExactText, nullable=False),
    Column("workflow_key", Text, nullable=False),  # digest of workflow_id, to find its rows by
    Column("operation_id", ExactText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("operation_type", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("target", ExactText, nullable=False),  # canonical JSON
    Column("arguments", ExactText, nullable=False),  # canonical JSON
    Column("labels", ExactText, nullable=False),  # JSON list, for people
    Column("state", Text, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("owner", Text, nullable=False),  # which attempt holds the epoch
    Column("lease_until", UtcDateTime, nullable=False),
    Column("not_before", UtcDateTime),
    Column("dispatched_at", UtcDateTime),
    Column("dispatches", Integer, nullable=False),
    Column("read_back_at", UtcDateTime),
    Column("receipt", LargeBinary),
    Column("receipt_digest", Text),
    Column("reason", ExactText),
    Column("attention_owner", ExactText),
    Column("attention_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    _one_of("state", tuple(OperationState)),
    CheckConstraint("epoch >= 1", name="epoch_positive"),
    CheckConstraint("dispatches >= 0", name="dispatches_counted"),
    CheckConstraint(f"length(receipt) <= {MAX_RECEIPT_BYTES}", name="receipt_small"),
    CheckConstraint(
        "state NOT IN ('applied', 'reconciled_applied') OR receipt IS NOT NULL",
        name="applied_has_receipt",
    ),
    CheckConstraint(
        "state IN ('reserved', 'cancelled') OR dispatched_at IS NOT NULL",
        name="effect_was_dispatched",
    ),
    Index(None, "workflow_key"),
    Index(None, "state", "lease_until"),
    Index(None, "attention_at"),
)

operation_tombstones: Final = Table(
    "operation_tombstones",
    metadata,
    Column("operation_key", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("receipt_digest", Text),
    Column("purged_at", UtcDateTime, nullable=False),
    _one_of("state", ("applied", "failed", "reconciled_applied", "cancelled")),
)

approvals: Final = Table(
    "approvals",
    metadata,
    Column("approval_id", Text, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("operation_key", Text, nullable=False),  # stands for (scope, operation_id)
    Column("operation_id", ExactText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("digest", Text, nullable=False),  # over everything the reviewer saw
    Column("operation_digest", Text, nullable=False),  # the ledger's
    Column("verdict", Text, nullable=False),
    Column("approver", ExactText, nullable=False),
    Column("source", Text, nullable=False),
    Column("token_id", Text, unique=True),  # single use, digest of the token's own id
    Column("note_digest", Text),
    Column("decided_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    Column("consumed_by", Text),
    Column("consumed_at", UtcDateTime),
    UniqueConstraint("operation_key", "version"),
    _one_of("verdict", ("approve", "reject")),
    _one_of("source", ("start", "signal", "update", "token")),
    CheckConstraint("(consumed_by IS NULL) = (consumed_at IS NULL)", name="consumption_complete"),
    CheckConstraint("consumed_by IS NULL OR verdict = 'approve'", name="rejection_unconsumed"),
)

evidence: Final = Table(
    "evidence",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("call", Text, primary_key=True),  # empty: of a run that keeps no trail
    Column("after", Text, nullable=False),  # the trail of what was read before
    Column("evidence_id", ExactText, nullable=False),
    Column("tool", ExactText, nullable=False),
    Column("arguments", LargeBinary, nullable=False),
    Column("source", ExactText, nullable=False),
    Column("locator", ExactText, nullable=False),
    Column("digest", Text, nullable=False),
    Column("content", LargeBinary),
    Column("size_bytes", BigInteger, nullable=False),
    Column("key_id", Text, nullable=False),  # empty: not encrypted
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("purged_at", UtcDateTime),
    CheckConstraint("(content IS NULL) = (purged_at IS NOT NULL)", name="content_or_purged"),
    Index(None, "expires_at"),
)

documents: Final = Table(
    "documents",
    metadata,
    Column("scope", Text, primary_key=True),  # empty: shared by all runs
    Column("kind", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("body", LargeBinary),
    Column("size_bytes", BigInteger, nullable=False),
    Column("key_id", Text, nullable=False),  # empty: not encrypted
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("purged_at", UtcDateTime),
    CheckConstraint("(body IS NULL) = (purged_at IS NOT NULL)", name="body_or_purged"),
    Index(None, "expires_at"),
)

audit: Final = Table(
    "audit",
    metadata,
    Column("tenant_key", Text, primary_key=True),  # digest of the tenant
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("subject", Text, nullable=False),  # an operation key, for one
    Column("kind", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),  # canonical JSON, all that is hashed
    Column("key_id", Text, nullable=False),  # empty: plain SHA-256, no keyed digest
    Column("prev_hash", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    CheckConstraint("seq >= 1", name="seq_positive"),
    Index(None, "subject"),
)

audit_heads: Final = Table(
    "audit_heads",
    metadata,
    Column("tenant_key", Text, primary_key=True),
    Column("tenant", ExactText, nullable=False),
    Column("seq", BigInteger, nullable=False),  # the count too: seq has no gaps
    Column("hash", Text, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    CheckConstraint("seq >= 0", name="seq_counted"),
)

switches: Final = Table(
    "switches",
    metadata,
    Column("name", Text, primary_key=True),
    Column("tenant", ExactText),  # NULL: everybody
    Column("stopped", Boolean, nullable=False),
    Column("by", ExactText, nullable=False),
    Column("reason", ExactText, nullable=False),
    Column("changed_at", UtcDateTime, nullable=False),
)

acceptances: Final = Table(
    "acceptances",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),  # no gaps: the last one counts
    Column("digest", Text, nullable=False),  # of the rules, whose body is a document
    Column("replaces", Text, nullable=False),
    Column("by", ExactText, nullable=False),
    Column("accepted_at", UtcDateTime, nullable=False),
    CheckConstraint("seq >= 1", name="seq_positive"),
)

requests: Final = Table(
    "requests",
    metadata,
    Column("request_key", Text, primary_key=True),  # digest of the caller's idempotency key
    Column("semantic_key", Text, unique=True),  # digest of subject, content and content_at
    Column("tenant", ExactText, nullable=False),
    Column("source", Text, nullable=False),
    Column("repository", ExactText, nullable=False),
    Column("number", ExactText, nullable=False),
    Column("subject_key", Text, nullable=False),  # digest of repository and issue
    Column("version", Integer),  # of the subject's content, from 1
    Column("content_digest", Text, nullable=False),
    Column("content_at", UtcDateTime),  # when the source says that it changed: newest wins
    Column("document_digest", Text),
    Column("workflow_id", ExactText),
    Column("run_id", Text),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt_at", UtcDateTime),
    Column("code", Text),  # why it was not started
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    _one_of("state", ("accepted", "started", "superseded", "refused", "failed")),
    Index(None, "state", "next_attempt_at"),
    Index(None, "subject_key"),
    Index(None, "subject_key", "version", unique=True),
)

deliveries: Final = Table(
    "deliveries",
    metadata,
    Column("delivery_key", Text, primary_key=True),  # digest of source and delivery id
    Column("source", Text, nullable=False),
    Column("delivery_id", ExactText, nullable=False),
    Column("event", ExactText, nullable=False),
    Column("action", ExactText),
    Column("tenant", ExactText, nullable=False),
    Column("repository", ExactText),
    Column("number", ExactText),
    Column("body_digest", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("code", Text),  # why it was not admitted
    Column("request_key", Text),
    Column("times_seen", Integer, nullable=False),
    Column("received_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    _one_of("state", ("received", "admitted", "ignored", "refused")),
    Index(None, "request_key"),
    Index(None, "received_at"),
)

spending_accounts: Final = Table(
    "spending_accounts",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("tenant_key", Text, nullable=False),  # digests, all three
    Column("repository_key", Text, nullable=False),
    Column("author_key", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index(None, "created_at"),
)

model_calls: Final = Table(
    "model_calls",
    metadata,
    Column("call_key", Text, primary_key=True),  # digest of the execution and its activity
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("day", Text, nullable=False),  # 2026-01-31, in UTC
    Column("tenant_key", Text, nullable=False),
    Column("repository_key", Text, nullable=False),
    Column("author_key", Text, nullable=False),
    Column("tokens", BigInteger, nullable=False),  # as reserved, until it is settled
    Column("cost_micros", BigInteger, nullable=False),
    Column("is_settled", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    CheckConstraint("attempt >= 1", name="attempt_positive"),
    CheckConstraint("tokens >= 0", name="tokens_counted"),
    CheckConstraint("cost_micros >= 0", name="cost_counted"),
    Index(None, "tenant_key", "day"),
    Index(None, "created_at"),
)

# The local tracker's. Nothing else reads them: a tracker is the far end of a wire.

tracker_issues: Final = Table(
    "tracker_issues",
    metadata,
    Column("issue_key", Text, primary_key=True),  # digest of repository and number
    Column("repository", ExactText, nullable=False),
    Column("repository_key", Text, nullable=False),
    Column("number", ExactText, nullable=False),
    Column("title", ExactText, nullable=False),
    Column("body", ExactText, nullable=False),
    Column("author", ExactText, nullable=False),
    Column("state", Text, nullable=False),
    Column("locked", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    _one_of("state", ("open", "closed")),
    Index(None, "repository_key", "created_at"),
)

tracker_labels: Final = Table(
    "tracker_labels",
    metadata,
    Column("label_key", Text, primary_key=True),  # digest of repository and folded name
    Column("repository_key", Text, nullable=False),
    Column("name", ExactText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index(None, "repository_key"),
)

tracker_issue_labels: Final = Table(
    "tracker_issue_labels",
    metadata,
    Column("issue_key", Text, ForeignKey("tracker_issues.issue_key"), primary_key=True),
    Column("label_key", Text, ForeignKey("tracker_labels.label_key"), primary_key=True),
    Column("position", Integer, nullable=False),
    Column("added_at", UtcDateTime, nullable=False),
)

tracker_events: Final = Table(
    "tracker_events",
    metadata,
    Column("issue_key", Text, ForeignKey("tracker_issues.issue_key"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("action", Text, nullable=False),
    Column("label", ExactText),
    Column("label_key", Text),
    Column("by", ExactText, nullable=False),
    Column("operation_key", Text),
    Column("at", UtcDateTime, nullable=False),
    _one_of("action", ("created", "edited", "added", "removed")),
    CheckConstraint(
        "(label IS NULL) = (action IN ('created', 'edited'))", name="label_where_it_belongs"
    ),
)
