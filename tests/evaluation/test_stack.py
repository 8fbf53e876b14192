"""The server and worker that a command brings along."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from triage.embedded import EmbeddedError
from triage.evaluation.stack import _private, own_stack
from triage.settings import Role, Settings


async def test_a_worker_that_dies_ends_the_work(settings: Settings) -> None:
    """Nobody waits for runs that no worker will finish."""
    async with own_stack(settings, "tests") as doomed:
        work = asyncio.create_task(doomed.run(asyncio.Event().wait()))
        os.kill(doomed.worker.pid, signal.SIGKILL)
        with pytest.raises(EmbeddedError, match="the worker ended"):
            await work


async def test_a_server_that_dies_ends_the_work(settings: Settings) -> None:
    """Nor for runs that nobody keeps any more."""
    async with own_stack(settings, "tests") as doomed:
        assert doomed.server is not None
        work = asyncio.create_task(doomed.run(asyncio.Event().wait()))
        os.kill(doomed.server.pid, signal.SIGKILL)
        with pytest.raises(EmbeddedError, match="the Temporal server ended"):
            await work
        # A worker without a server takes its time to stop.
        os.kill(doomed.worker.pid, signal.SIGKILL)


def test_nothing_of_the_users_reaches_the_worker(settings: Settings, tmp_path: Path) -> None:
    """Whatever is configured, the answers are the built-in rules' and the script's."""
    theirs = settings.model_copy(
        update={"task_queue": "theirs", "model": "openai:x", "local_trust": False, "roles": ()}
    )
    ours = _private(theirs, tmp_path, "eval")
    assert ours.task_queue.startswith("triage-eval-")
    assert ("rules", True, tuple(Role)) == (ours.model, ours.local_trust, ours.roles)
    assert f"sqlite:///{tmp_path}/triage.db" == ours.database_url
