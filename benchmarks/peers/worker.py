"""A peer's worker: ``python -m benchmarks.peers.worker``, with the framework's plugin.

The modules of `benchmarks` are loaded once and not for every run, as the product's own are: the
sandbox's documentation offers that for what is free of side effects. The rest is the SDK's default.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from importlib import import_module

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from benchmarks.peers.peer import PEER_VARIABLE, QUEUE, Peer
from triage.settings import process_environment


async def serve(peer: Peer) -> None:
    """Poll until SIGTERM."""
    connection = ClientConfig.load_client_connect_config()
    client = await Client.connect(**connection, plugins=[peer.plugin()])
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    restrictions = SandboxRestrictions.default.with_passthrough_modules("benchmarks")
    async with Worker(
        client,
        task_queue=QUEUE,
        workflows=[peer.workflow],
        activities=list(peer.activities),
        workflow_runner=SandboxedWorkflowRunner(restrictions=restrictions),
    ):
        print("worker ready", file=sys.stderr, flush=True)  # noqa: T201 - whoever started it waits
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve(import_module(process_environment()[PEER_VARIABLE]).PEER))
