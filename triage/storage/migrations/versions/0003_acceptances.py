"""Which rules were accepted, by whom and when."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table of acceptances; without a row the built-in rules are the accepted ones."""
    op.create_table(
        "acceptances",
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("replaces", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("seq >= 1", name=op.f("ck_acceptances_seq_positive")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_acceptances")),
    )
