"""What the tables of all modules share: one set of metadata, one way to name constraints."""

from __future__ import annotations

from typing import Final

from sqlalchemy import CheckConstraint, MetaData

metadata: Final = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    """Return the rule that a column holds one of `values`."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")
