"""The database server of the short soak, if its seed wants one."""

from __future__ import annotations

from tests.conftest_storage import postgres_server

__all__ = ["postgres_server"]
