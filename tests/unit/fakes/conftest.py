"""A fake tracker over HTTP with one issue, and a store for the checker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest_storage import empty_url, postgres_server, store, store_url
from tests.fakes.control import TrackerControl
from tests.fakes.tracker import serving
from tests.unit.fakes.scene import LABELS, NUMBER, REPOSITORY

__all__ = ["empty_url", "postgres_server", "store", "store_url"]


@pytest.fixture
async def control(tmp_path: Path) -> AsyncIterator[TrackerControl]:
    """The hand on a tracker that has one issue and three labels."""
    async with serving(tmp_path / "commits.jsonl") as running:
        hand = TrackerControl(running.api.address, running.control.address)
        await hand.define_labels(REPOSITORY, LABELS)
        await hand.open_issue(REPOSITORY, NUMBER, title="Crash", body="It crashes.")
        yield hand
