"""A server for deliveries, on either database, with no Temporal server to reach."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.conftest import NOWHERE
from tests.conftest_storage import postgres_server, store_url, template
from tests.web.hooks import Hook, hook_settings, serving
from tests.workflow.conftest import server, world

__all__ = ["postgres_server", "server", "store_url", "world"]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no machine be too slow for a server: `test_in_time` shows its limits."""
    monkeypatch.setattr("triage.web.in_time.ANSWER_SECONDS", 30.0)
    monkeypatch.setattr("triage.web.serving.ADMISSION_SECONDS", 30.0)
    monkeypatch.setattr("triage.web.serving.KEEP_ALIVE_SECONDS", 60)


@pytest.fixture
async def hook(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Hook]:
    """A server that accepts and can start nothing."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", NOWHERE)
    async with serving(hook_settings(tmp_path, store_url)) as opened:
        yield opened


@pytest.fixture
async def light_url(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An SQLite database: for what no database has a part in."""
    path = tmp_path / "hook.db"
    shutil.copyfile(await template(tmp_path_factory), path)
    return f"sqlite:///{path}"


@pytest.fixture
async def light_hook(
    light_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Hook]:
    """The same server, on SQLite alone."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", NOWHERE)
    async with serving(hook_settings(tmp_path, light_url)) as opened:
        yield opened
