"""What the tests of the evaluation share: a user's settings, and a server with a worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from triage.evaluation.stack import Stack, own_stack
from triage.settings import Settings


@pytest.fixture(scope="session")
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder, on a machine where nothing about Temporal is configured."""
    folder = tmp_path_factory.mktemp("evaluation")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"):
            patch.delenv(name, raising=False)
        patch.setenv("TEMPORAL_CONFIG_FILE", str(folder / "no-temporal.toml"))
        yield folder


@pytest.fixture(scope="session")
def settings(nowhere: Path) -> Settings:
    """The settings of a user who has configured nothing."""
    return Settings(home=nowhere / "home")


@pytest_asyncio.fixture(scope="session")
async def stack(settings: Settings) -> AsyncIterator[Stack]:
    """A server and a worker that the tests share; each evaluation on it is one of its own."""
    async with own_stack(settings, "tests") as running:
        yield running
