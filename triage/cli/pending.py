"""What many runs wait for: each is asked once, a few at a time, and none may keep the list waiting.

Why it exists: visibility knows that a run waits, and only the run knows for what. A run that cannot
be asked stays on the list, with the reason in the place of its operation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from pydantic import TypeAdapter, ValidationError
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError

from triage.cli.briefing_trust import who_may_in_vain
from triage.cli.clients import RPC_TIMEOUT, Run, ask, has_worker
from triage.cli.errors import CliError
from triage.contracts import names
from triage.contracts.state import PendingView

MAX_ASKED: Final = 50
AT_ONCE: Final = 8
PATIENCE_SECONDS: Final = 3.0
ALL_SECONDS: Final = 7.0
VAIN_SECONDS: Final = 3.0
"""For what is a warning only."""

NOT_ASKED: Final = f"not asked: only the latest {MAX_ASKED} are"
NO_WORKER: Final = "cannot be asked: no worker"
NO_ANSWER: Final = "cannot be asked: no answer"
ANOTHER_VERSION: Final = "cannot be asked: its worker is another version"

Waiting = PendingView | str | None
"""What a run waits for; None if for nothing any more; or why nobody knows."""
InVain = tuple[str, ...] | None
"""Who may approve, where they are fewer than have to; None where there may be enough."""

_PENDING: Final = TypeAdapter(PendingView | None)


async def pending_of(client: Client, executions: Sequence[WorkflowExecution]) -> list[Waiting]:
    """Return what each of these runs waits for, in their order, within `ALL_SECONDS`."""
    asked = executions[:MAX_ASKED]
    turns = asyncio.Semaphore(AT_ONCE)
    polled = await _polled(client, {one.task_queue for one in asked})
    asking = [asyncio.create_task(_ask(client, one, polled, turns)) for one in asked]
    if asking:
        await asyncio.wait(asking, timeout=ALL_SECONDS)
    for task in asking:
        task.cancel()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    found = [NO_ANSWER if isinstance(one, BaseException) else one for one in answers]
    return [*found, *(NOT_ASKED for _ in executions[MAX_ASKED:])]


async def vain_of(
    client: Client, executions: Sequence[WorkflowExecution], waiting: Sequence[Waiting]
) -> list[InVain]:
    """Return who may approve, for each run that cannot be approved by as many as have to.

    Where that cannot be read in time, nothing is said of a run.
    """
    turns = asyncio.Semaphore(AT_ONCE)

    async def look(execution: WorkflowExecution, pending: Waiting) -> InVain:
        if not isinstance(pending, PendingView):
            return None
        handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
        async with turns:
            found = Run(handle, await handle.describe(rpc_timeout=RPC_TIMEOUT))
            return await who_may_in_vain(client, found, pending.approvals_required)

    looking = [asyncio.create_task(look(*one)) for one in zip(executions, waiting, strict=True)]
    if looking:
        await asyncio.wait(looking, timeout=VAIN_SECONDS)
    for task in looking:
        task.cancel()
    answers = await asyncio.gather(*looking, return_exceptions=True)
    return [None if isinstance(one, BaseException) else one for one in answers]


async def _polled(client: Client, queues: set[str]) -> Mapping[str, bool]:
    return {queue: await has_worker(client, queue) for queue in queues}


async def _ask(
    client: Client,
    execution: WorkflowExecution,
    polled: Mapping[str, bool],
    turns: asyncio.Semaphore,
) -> Waiting:
    if not polled[execution.task_queue]:
        return NO_WORKER
    handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
    try:
        async with turns:
            patience = timedelta(seconds=PATIENCE_SECONDS)
            return read_pending(await ask(handle, names.QUERY_PENDING, patience))
    except (CliError, RPCError):
        return NO_ANSWER


def read_pending(answer: bytes) -> Waiting:
    """Read the answer of the query `pending`."""
    try:
        return _PENDING.validate_json(answer)
    except ValidationError:
        return ANOTHER_VERSION
