"""One server and one worker for all named proofs, the clock that skips, and both databases."""

from __future__ import annotations

from tests.conftest_storage import postgres_server, store, store_url
from tests.workflow.conftest import server, skipping, skipping_world, world

__all__ = [
    "postgres_server",
    "server",
    "skipping",
    "skipping_world",
    "store",
    "store_url",
    "world",
]
