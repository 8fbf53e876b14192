"""Finds continuations of a run that have ids of their own, which nothing of the run's leads to.

Why it exists: only what a run was started with says what it continues, and no server can be asked
for that. So the latest runs are looked through, and no more of them than a command can wait for.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

from temporalio.client import Client, WorkflowExecution

from triage.cli.clients import RPC_TIMEOUT, Run
from triage.continuing import describe, first_run_id, read_link
from triage.contracts import names
from triage.contracts.options import ContinuedFrom

LOOKED_THROUGH: Final = 100
"""So many of the latest runs are looked at."""
AT_ONCE: Final = 8


async def newest_elsewhere(
    client: Client, since: datetime, chain: set[tuple[str, str]]
) -> Run | None:
    """Return the newest of the latest runs that continues one of a chain, or one that does.

    Args:
        client: asks the server.
        since: from when on one may have been started: the first of the chain had ended then.
        chain: workflow id and first run id of those that are known; what is found is added.

    Raises:
        RPCError: it cannot be said.
    """
    newest = None
    for link, execution in await _links(client, since):
        if link is None or (link.workflow_id, link.run_id) not in chain:
            continue
        handle = client.get_workflow_handle(execution.id)
        if (found := await describe(handle)) is not None:
            chain.add((execution.id, first_run_id(found)))
            newest = Run(handle, found)
    return newest


async def _links(
    client: Client, since: datetime
) -> list[tuple[ContinuedFrom | None, WorkflowExecution]]:
    """Return the latest runs with what they continue, in the order in which they began."""
    query = f"WorkflowType = '{names.ISSUE_TRIAGE}' AND StartTime >= '{since.isoformat()}'"
    listed = client.list_workflows(query, limit=LOOKED_THROUGH, rpc_timeout=RPC_TIMEOUT)
    found = sorted([one async for one in listed], key=lambda one: one.start_time)
    turns = asyncio.Semaphore(AT_ONCE)

    async def link_of(one: WorkflowExecution) -> ContinuedFrom | None:
        async with turns:
            return await read_link(client.get_workflow_handle(one.id, run_id=one.run_id))

    return list(zip(await asyncio.gather(*map(link_of, found)), found, strict=True))
