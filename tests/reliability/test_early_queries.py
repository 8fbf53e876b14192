"""A query that a fresh worker answers before the workflow task leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

import worker
from tests.workflow.decisions import a_request
from triage.contracts.response import TriageResponse
from triage.contracts.search_attributes import TRIAGE_WAITING_SINCE
from triage.embedded import EmbeddedServer, ServerOptions, WorkerProcess
from triage.replay import replay_failure
from triage.settings import Settings

WINDOW_SECONDS: Final = 4
STICKY_SECONDS: Final = 4.0
PATIENCE: Final = timedelta(seconds=30)


@pytest.mark.long
async def test_a_late_approval_does_not_count_though_a_query_came_first(tmp_path: Path) -> None:
    """The worker dies, somebody asks, the deadline passes, an approval comes, a worker starts.

    The approval is late, whatever the query had the worker look at, and the history replays.
    """
    settings = Settings(
        home=tmp_path,
        task_queue="q",
        local_trust=True,
        model="rules",
        tracker="local",
        sticky_timeout_seconds=STICKY_SECONDS,
        shutdown_grace_seconds=1,
    )
    async with EmbeddedServer(ServerOptions(db_filename=tmp_path / "t.db")) as server:
        async with WorkerProcess(settings, server.environment()) as first:
            run = await server.client.start_workflow(
                "IssueTriage",
                args=[a_request(), {"mode": "approve", "approval_window_seconds": WINDOW_SECONDS}],
                id="w",
                task_queue="q",
                result_type=TriageResponse,
            )
            began = None
            while began is None:
                began = (await run.describe()).typed_search_attributes.get(TRIAGE_WAITING_SINCE)
                await asyncio.sleep(0.05)
            os.kill(first.pid, signal.SIGKILL)
        # The server waits for the dead worker first, which still counts as the run's own.
        until = began.timestamp() + WINDOW_SECONDS + 1
        await asyncio.sleep(until - STICKY_SECONDS + 1.5 - time.time())
        asked = asyncio.create_task(run.query("pending", rpc_timeout=PATIENCE))
        await asyncio.sleep(until - time.time())
        await run.signal("approve", {"operation_id": "op-6", "version": 6, "approver": "m"})
        async with WorkerProcess(settings, server.environment()):
            await asked
            response = await run.result()
        history = await run.fetch_history()
    assert await replay_failure(history, worker.WORKFLOWS) is None
    assert "the time to approve the write ran out" == response.reason
