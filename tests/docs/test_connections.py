"""How many connections to PostgreSQL an operator has to plan for."""

from __future__ import annotations

from typing import cast

from sqlalchemy import make_url
from sqlalchemy.pool import QueuePool

from tests.docs.pages import page
from triage.storage.engine import _postgresql_engine


def test_a_worker_holds_as_many_connections_as_the_page_says() -> None:
    """Those that stay and those beyond them are what the pool says of itself."""
    engine = _postgresql_engine(make_url("postgresql+psycopg://nobody@/nothing"))
    pool = cast("QueuePool", engine.pool)
    assert (5, 10) == (pool.size(), pool._max_overflow)
    text = " ".join(page("docs/performance.md").prose.split())
    assert "at most 15 connections (five that stay and ten more when busy" in text
