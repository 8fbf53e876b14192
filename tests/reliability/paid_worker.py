"""A worker process whose model keeps a bill, and that may die right after it paid for an answer.

Why it exists: a provider is paid when it answers, and an answer that a killed worker never handed
in is lost. Only a process that really ends between the two shows what comes of it.

Run it with ``python -m tests.reliability.paid_worker`` and the arguments of `serve`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final
from unittest import mock

from pydantic import JsonValue
from temporalio.client import Client

import worker
from activities import decide
from activities.decide import DecideActivities
from triage.contracts.payloads import DecideOutcome, DecideResult, Usage
from triage.converter import data_converter
from triage.models.base import ModelAdapter, ModelRequest
from triage.settings import Settings

READY: Final = "ready"
BILL: Final = "bill.txt"
TOKENS: Final = 100


class Billed:
    """A provider that never says the same thing twice, and writes down each call that it serves."""

    name = "billed"
    revision = "1"

    def __init__(self, bill: Path) -> None:
        self._bill = bill

    async def decide(self, request: ModelRequest) -> DecideResult:
        """Hand the issue over, in words that name the call."""
        with self._bill.open("a", encoding="utf-8") as file:
            file.write(f"step {request.step}\n")
        call = len(self._bill.read_text(encoding="utf-8").splitlines())
        decision: JsonValue = {
            "kind": "request_review",
            "route": "bug",
            "reason": f"the answer of call {call}",
            "evidence_ids": [],
        }
        usage = Usage(tokens=TOKENS)
        return DecideResult(outcome=DecideOutcome.DECISION, decision=decision, usage=usage)


async def serve(address: str, queue: str, home: Path, *, dies: bool) -> None:
    """Poll as `worker.py` does until killed; with `dies`, by itself once an answer is there."""
    settings = Settings(
        home=home, task_queue=queue, local_trust=True, model="rules", tracker="local"
    ).model_copy(update={"sticky_timeout_seconds": 1.0})
    client = await Client.connect(address, data_converter=data_converter)
    ask = DecideActivities._ask

    async def build(*_: object, **__: object) -> ModelAdapter:
        return Billed(home / BILL)

    async def asked(self: DecideActivities, model: ModelAdapter, request: ModelRequest) -> object:
        result = await ask(self, model, request)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    async with worker.open_services(settings) as opened, AsyncExitStack() as running:
        # The shorter it is, the sooner the server finds that an attempt is lost.
        services = replace(opened, model_timeout=timedelta(seconds=1))
        running.enter_context(mock.patch.object(decide, "build_model", build))
        running.enter_context(mock.patch.object(DecideActivities, "_ask", asked))
        for part in worker.build_workers(client, settings, services):
            await running.enter_async_context(part)
        print(READY, flush=True)  # noqa: T201 - whoever started it waits
        await asyncio.Event().wait()


if __name__ == "__main__":
    _, where, polled, folder, ending = sys.argv
    asyncio.run(serve(where, polled, Path(folder), dies=ending == "dies"))
