"""Which runs go on, and which of them wait for a person: asked of the server for all at once.

Why it exists: dozens of runs that are each asked several times a second would keep the server busy
with nothing else. The server knows it with or without a worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Final

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from triage.contracts.search_attributes import TRIAGE_WAITING_SINCE

LOOK_SECONDS: Final = 0.3


class Board:
    """What the server said last of the runs on one queue.

    Attributes:
        waiting: since when each run that waits for a person does so.
        closed: how each run ended.
    """

    def __init__(self, client: Client, queue: str) -> None:
        self._client = client
        self._query = f"TaskQueue = '{queue}' AND ExecutionStatus = 'Running'"
        self._open: set[str] = set()
        self._looked = asyncio.Event()
        self.waiting: dict[str, datetime] = {}
        self.closed: dict[str, WorkflowExecutionStatus] = {}

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Keep it up to date while the body runs."""
        keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    def add(self, workflow_id: str) -> None:
        """Look after a run that was started."""
        self._open.add(workflow_id)

    async def news(self) -> None:
        """Return after the next look."""
        await self._looked.wait()

    async def _look(self) -> None:
        waiting, running = {}, set()
        async for run in self._client.list_workflows(self._query):
            running.add(run.id)
            since = run.typed_search_attributes.get(TRIAGE_WAITING_SINCE)
            if since is not None:
                waiting[run.id] = since
        for workflow_id in self._open - running:
            await self._ask(workflow_id)
        self.waiting = waiting

    async def _ask(self, workflow_id: str) -> None:
        """Learn how a run ended; a new one may only not be listed yet."""
        found = await self._client.get_workflow_handle(workflow_id).describe()
        if found.status is not None and found.status is not WorkflowExecutionStatus.RUNNING:
            self.closed[workflow_id] = found.status
            self._open.discard(workflow_id)

    async def _keep(self) -> None:
        while True:
            with suppress(RPCError):  # the next look may do better
                await self._look()
            self._looked.set()
            self._looked = asyncio.Event()
            await asyncio.sleep(LOOK_SECONDS)
