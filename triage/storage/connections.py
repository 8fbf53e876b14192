"""What a transaction works with, by the name of its type alone.

Why it exists: SQLAlchemy's asyncio layer loads its whole object-relational mapper, 6 MB that a
store on SQLite has no use for. So only a store on PostgreSQL loads it, and whoever is handed a
connection names its type from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection as AsyncConnection
else:
    AsyncConnection = object
