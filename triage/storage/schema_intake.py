"""The tables of what comes in beside deliveries: comments that decide, polling and backfills.

Why it exists: they follow the rules of `triage.storage.schema`, which has no room left for them.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text

from triage.storage.columns import ExactText, UtcDateTime
from triage.storage.schema_base import metadata, one_of

vouchers: Final = Table(
    "vouchers",
    metadata,
    Column("voucher_key", Text, primary_key=True),  # digest of operation, version and person
    Column("operation_key", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("tracker", Text, nullable=False),
    Column("person_id", ExactText, nullable=False),  # the tracker's own, which no rename changes
    Column("login", ExactText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index(None, "operation_key"),
)

commands: Final = Table(
    "commands",
    metadata,
    Column("command_key", Text, primary_key=True),  # digest of source, repository and comment
    Column("source", Text, nullable=False),
    Column("tenant", ExactText, nullable=False),
    Column("repository", ExactText, nullable=False),
    Column("number", ExactText, nullable=False),
    Column("subject_key", Text, nullable=False),
    Column("person_id", ExactText, nullable=False),
    Column("login", ExactText, nullable=False),
    Column("operation_id", ExactText, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("said_at", UtcDateTime, nullable=False),  # by the source's clock
    Column("state", Text, nullable=False),
    Column("code", Text),  # why it did not count, or why it waits
    Column("workflow_id", ExactText),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    one_of("verdict", ("approve", "reject")),
    one_of("state", ("waiting", "accepted", "refused")),
    Index(None, "state", "next_attempt_at"),
    Index(None, "created_at"),
)

cursors: Final = Table(
    "cursors",
    metadata,
    Column("cursor_key", Text, primary_key=True),  # digest of tenant, source and repository
    Column("tenant", ExactText, nullable=False),
    Column("source", Text, nullable=False),
    Column("repository", ExactText, nullable=False),
    Column("position", UtcDateTime, nullable=False),  # by the source's clock
    Column("updated_at", UtcDateTime, nullable=False),
)

backfills: Final = Table(
    "backfills",
    metadata,
    Column("backfill_id", Text, primary_key=True),
    Column("wanted_key", Text, nullable=False),  # digest of what was asked for
    Column("wanted", ExactText, nullable=False),  # canonical JSON
    Column("state", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    one_of("state", ("running", "finished")),
    Index(None, "wanted_key"),
)

backfill_items: Final = Table(
    "backfill_items",
    metadata,
    Column("item_key", Text, primary_key=True),  # digest of backfill and issue
    Column("backfill_id", Text, nullable=False),
    Column("number", ExactText, nullable=False),
    Column("result", ExactText, nullable=False),  # canonical JSON
    Column("created_at", UtcDateTime, nullable=False),
    Index(None, "backfill_id"),
)
