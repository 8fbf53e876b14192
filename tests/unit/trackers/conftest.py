"""Gives these tests a store on SQLite and on PostgreSQL, and a fake GitHub with one issue."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest_storage import (
    empty_url,
    postgres_server,
    store,
    store_url,
)
from tests.unit.trackers.far_ends import GitHubEnd, an_app, github_end

__all__ = ["empty_url", "postgres_server", "store", "store_url"]


@pytest.fixture
async def end(tmp_path: Path) -> AsyncIterator[GitHubEnd]:
    """GitHub, where we are an account with a token."""
    async with github_end(tmp_path) as opened:
        yield opened


@pytest.fixture
async def app_end(tmp_path: Path) -> AsyncIterator[GitHubEnd]:
    """GitHub, where we are an App."""
    async with github_end(tmp_path, app=an_app()) as opened:
        yield opened
