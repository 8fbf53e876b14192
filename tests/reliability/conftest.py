"""One server and one worker for all named proofs, the clock that skips, and both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest_storage import postgres_server, store, store_url
from tests.workflow.conftest import server, skipping, skipping_world, world
from tests.workflow.world import World, dev_server, opened_services, opened_world

__all__ = [
    "postgres_server",
    "server",
    "skipping",
    "skipping_world",
    "store",
    "store_url",
    "world",
]

EARLY = "limit.historyCount.suggestContinueAsNew=120"
"""By default a history is long from 4,096 events on."""


@pytest.fixture(scope="session")
async def early_world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """The production workers on a server whose histories are long early."""
    home = tmp_path_factory.mktemp("early")
    async with (
        await dev_server("--dynamic-config-value", EARLY) as running,
        opened_services(home) as services,
        opened_world(running.client, services, home) as opened,
    ):
        yield opened
