"""What calls of models cost, each reserved before it is made, and whom they are charged to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both tables."""
    op.create_table(
        "spending_accounts",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("tenant_key", sa.Text(), nullable=False),
        sa.Column("repository_key", sa.Text(), nullable=False),
        sa.Column("author_key", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("scope", name=op.f("pk_spending_accounts")),
    )
    op.create_index(op.f("ix_spending_accounts_created_at"), "spending_accounts", ["created_at"])
    op.create_table(
        "model_calls",
        sa.Column("call_key", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("tenant_key", sa.Text(), nullable=False),
        sa.Column("repository_key", sa.Text(), nullable=False),
        sa.Column("author_key", sa.Text(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_micros", sa.BigInteger(), nullable=False),
        sa.Column("is_settled", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("attempt >= 1", name=op.f("ck_model_calls_attempt_positive")),
        sa.CheckConstraint("tokens >= 0", name=op.f("ck_model_calls_tokens_counted")),
        sa.CheckConstraint("cost_micros >= 0", name=op.f("ck_model_calls_cost_counted")),
        sa.PrimaryKeyConstraint("call_key", "attempt", name=op.f("pk_model_calls")),
    )
    op.create_index(op.f("ix_model_calls_tenant_key_day"), "model_calls", ["tenant_key", "day"])
    op.create_index(op.f("ix_model_calls_created_at"), "model_calls", ["created_at"])
