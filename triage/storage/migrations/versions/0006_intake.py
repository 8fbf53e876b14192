"""Comments that decide, where polling stopped, and backfills."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the tables; nothing that was there changes."""
    _vouchers()
    _commands()
    _cursors()
    _backfills()


def _vouchers() -> None:
    op.create_table(
        "vouchers",
        sa.Column("voucher_key", sa.Text(), nullable=False),
        sa.Column("operation_key", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("tracker", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("login", sa.Text(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("voucher_key", name=op.f("pk_vouchers")),
    )
    op.create_index(op.f("ix_vouchers_operation_key"), "vouchers", ["operation_key"])


def _commands() -> None:
    op.create_table(
        "commands",
        sa.Column("command_key", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("subject_key", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("login", sa.Text(), nullable=False),
        sa.Column("operation_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("said_at", _TIME, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("workflow_id", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", _TIME, nullable=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.CheckConstraint(
            "verdict IN ('approve', 'reject')", name=op.f("ck_commands_verdict_known")
        ),
        sa.CheckConstraint(
            "state IN ('waiting', 'accepted', 'refused')", name=op.f("ck_commands_state_known")
        ),
        sa.PrimaryKeyConstraint("command_key", name=op.f("pk_commands")),
    )
    op.create_index(
        op.f("ix_commands_state_next_attempt_at"), "commands", ["state", "next_attempt_at"]
    )
    op.create_index(op.f("ix_commands_created_at"), "commands", ["created_at"])


def _cursors() -> None:
    op.create_table(
        "cursors",
        sa.Column("cursor_key", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("position", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("cursor_key", name=op.f("pk_cursors")),
    )


def _backfills() -> None:
    op.create_table(
        "backfills",
        sa.Column("backfill_id", sa.Text(), nullable=False),
        sa.Column("wanted_key", sa.Text(), nullable=False),
        sa.Column("wanted", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.CheckConstraint(
            "state IN ('running', 'finished')", name=op.f("ck_backfills_state_known")
        ),
        sa.PrimaryKeyConstraint("backfill_id", name=op.f("pk_backfills")),
    )
    op.create_index(op.f("ix_backfills_wanted_key"), "backfills", ["wanted_key"])
    op.create_table(
        "backfill_items",
        sa.Column("item_key", sa.Text(), nullable=False),
        sa.Column("backfill_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("item_key", name=op.f("pk_backfill_items")),
    )
    op.create_index(op.f("ix_backfill_items_backfill_id"), "backfill_items", ["backfill_id"])
