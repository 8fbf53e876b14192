"""Gives these tests a store on SQLite and on PostgreSQL."""

from tests.conftest_storage import (
    empty_url,
    postgres_server,
    store,
    store_url,
)

__all__ = ["empty_url", "postgres_server", "store", "store_url"]
