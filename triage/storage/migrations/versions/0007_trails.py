"""Evidence by the call that brought it, and after what: a run may be given up, and read again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_KEY = ["scope", "version", "call"]
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add both columns, one of them to the key; what is there is of runs that keep no trail."""
    if op.get_bind().dialect.name == "sqlite":
        # It changes no key of a table.
        _made_anew()
        return
    for name in ("call", "after"):
        op.add_column("evidence", sa.Column(name, sa.Text(), nullable=False, server_default=""))
        op.alter_column("evidence", name, server_default=None)
    op.drop_constraint(op.f("pk_evidence"), "evidence", type_="primary")
    op.create_primary_key(op.f("pk_evidence"), "evidence", _KEY)


def _made_anew() -> None:
    op.create_table(
        "evidence_anew",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("after", sa.Text(), nullable=False),
        sa.Column("evidence_id", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("arguments", sa.LargeBinary(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("locator", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=True),
        sa.Column("purged_at", _TIME, nullable=True),
        sa.CheckConstraint(
            "(content IS NULL) = (purged_at IS NOT NULL)",
            name=op.f("ck_evidence_content_or_purged"),
        ),
        sa.PrimaryKeyConstraint(*_KEY, name=op.f("pk_evidence")),
    )
    kept = (
        "scope, version, evidence_id, tool, arguments, source, locator, digest, content,"
        " size_bytes, key_id, created_at, expires_at, purged_at"
    )
    op.execute(
        f"INSERT INTO evidence_anew ({kept}, call, after) SELECT {kept}, '', '' FROM evidence"  # noqa: S608 - names of ours
    )
    op.drop_table("evidence")
    op.rename_table("evidence_anew", "evidence")
    op.create_index(op.f("ix_evidence_expires_at"), "evidence", ["expires_at"])
