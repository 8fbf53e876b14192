"""What the recorder writes is what anybody gets with the `temporal` command."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from typing import Any

from temporalio.client import Client

from tests.replay.people import EDITED
from tests.replay.traces import traces, without_traces
from tests.workflow.decisions import a_request
from triage.contracts.names import ISSUE_TRIAGE, SIGNAL_EDIT, TASK_QUEUE
from triage.embedded import EmbeddedServer, temporal_program

RUN = "recorded-twice"


async def _shown(server: EmbeddedServer) -> Any:  # noqa: ANN401 - any JSON value
    command = ("workflow", "show", "--workflow-id", RUN, "--output", "json")
    address = ("--address", server.address)
    process = await asyncio.create_subprocess_exec(
        temporal_program(), *command, *address, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return json.loads(output)


async def _start(client: Client) -> None:
    await client.start_workflow(
        ISSUE_TRIAGE,
        a_request(),
        id=RUN,
        task_queue=TASK_QUEUE,
        start_signal=SIGNAL_EDIT,
        start_signal_args=[EDITED],
    )


async def test_a_recording_is_what_the_command_line_shows() -> None:
    """`triage replay` takes a history from either, and where it was recorded is found in both."""
    async with EmbeddedServer() as server:
        await _start(server.client)
        history = await server.client.get_workflow_handle(RUN).fetch_history()
        shown = await _shown(server)
    assert shown == json.loads(without_traces(history))
    identity = f"identity: {os.getpid()}@{socket.gethostname()}"
    assert {identity} == set(traces(shown))
