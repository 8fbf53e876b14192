"""Which version of an issue a request is of, and which issue a delivery is about."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what the tables of the first schema lacked; nothing wrote to them before this one."""
    op.add_column("requests", sa.Column("version", sa.Integer(), nullable=True))
    op.create_index(
        op.f("ix_requests_subject_key_version"),
        "requests",
        ["subject_key", "version"],
        unique=True,
    )
    op.add_column("deliveries", sa.Column("repository", sa.Text(), nullable=True))
    op.add_column("deliveries", sa.Column("number", sa.Text(), nullable=True))
