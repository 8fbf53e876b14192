"""Asks a run again that could not be looked at just then.

A worker refuses a query that comes before the run's next workflow task (`triage.early_queries`).
That task is on its way, so the question is worth repeating, for a bounded time.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

from temporalio.client import (
    Interceptor,
    OutboundInterceptor,
    QueryWorkflowInput,
    WorkflowQueryFailedError,
)

ASK_AGAIN: Final = "the run is about to go on and could not be looked at; ask again"
"""What a worker answers; nothing of the run is in it."""

PATIENCE: Final = timedelta(seconds=6)
_PAUSE_SECONDS: Final = 0.2


class PatientQueries(Interceptor):
    """Repeats such a question, by a client's own timeout or for `PATIENCE`."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 - the SDK's name
        """Put the repetition before the call."""
        return _Patient(next)


class _Patient(OutboundInterceptor):
    async def query_workflow(self, input: QueryWorkflowInput) -> Any:  # noqa: A002, ANN401 - the SDK's
        loop = asyncio.get_running_loop()
        until = loop.time() + (input.rpc_timeout or PATIENCE).total_seconds()
        while True:
            try:
                return await super().query_workflow(input)
            except WorkflowQueryFailedError as error:
                if error.message != ASK_AGAIN or loop.time() >= until:
                    raise
            await asyncio.sleep(_PAUSE_SECONDS)
