"""Run by Alembic: applies revisions inside the transaction of `triage.storage.migrate`."""

from __future__ import annotations

from alembic import context

from triage.storage.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
