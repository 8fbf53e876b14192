"""The floor's worker: ``python -m benchmarks.floor_worker``, with the SDK's own defaults."""

from __future__ import annotations

import asyncio
import signal
import sys

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.worker import Worker

from benchmarks.floor import QUEUE, Floor, nothing


async def serve() -> None:
    """Poll until SIGTERM."""
    client = await Client.connect(**ClientConfig.load_client_connect_config())
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Worker(client, task_queue=QUEUE, workflows=[Floor], activities=[nothing]):
        print("worker ready", file=sys.stderr, flush=True)  # noqa: T201 - whoever started it waits
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve())
