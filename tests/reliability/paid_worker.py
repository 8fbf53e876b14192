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
from activities import services as services_module
from triage.contracts.payloads import DecideOutcome, DecideResult, Usage
from triage.converter import data_converter
from triage.faults import Point, arm
from triage.models.base import ModelAdapter, ModelRequest, PaidAnswer, PaidModel
from triage.models.prices import Price
from triage.models.quotes import Quote
from triage.settings import Settings

READY: Final = "ready"
BILL: Final = "bill.txt"
TOKENS: Final = 100
RESERVED: Final = 150


class Billed(PaidModel):
    """A provider that never says the same thing twice, and writes down each call that it serves."""

    name = "billed"
    revision = "1"
    prompt = "the prompt"
    prices = "the prices"
    timeout = timedelta(seconds=1)

    def __init__(self, bill: Path) -> None:
        self._bill = bill

    def quote(self, request: ModelRequest) -> Quote:
        """Reserve more than a call uses."""
        return Quote(RESERVED - 1, 1, Price(input=0, output=0))

    async def decide(self, request: ModelRequest) -> DecideResult:
        """Answer without a reservation."""
        return (await self.ask(request, self.quote(request))).result

    async def ask(self, request: ModelRequest, quote: Quote) -> PaidAnswer:
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
        result = DecideResult(outcome=DecideOutcome.DECISION, decision=decision)
        return PaidAnswer(result, Usage(tokens=TOKENS))


async def serve(address: str, queue: str, home: Path, *, dies: bool) -> None:
    """Poll as `worker.py` does until killed; with `dies`, by itself once an answer is there."""
    settings = Settings(
        home=home, task_queue=queue, local_trust=True, model="rules", tracker="local"
    ).model_copy(update={"sticky_timeout_seconds": 1.0})
    client = await Client.connect(address, data_converter=data_converter)

    async def build(*_: object, **__: object) -> ModelAdapter:
        return Billed(home / BILL)

    def reached(point: Point, _subject: str) -> None:
        if dies and point is Point.DECIDE_AFTER_MODEL:
            os.kill(os.getpid(), signal.SIGKILL)

    async with worker.open_services(settings) as opened, AsyncExitStack() as running:
        # The shorter it is, the sooner the server finds that an attempt is lost.
        services = replace(opened, model_timeout=timedelta(seconds=1))
        running.enter_context(mock.patch.object(services_module, "build_model", build))
        running.callback(arm(reached))
        for part in worker.build_workers(client, settings, services):
            await running.enter_async_context(part)
        print(READY, flush=True)  # noqa: T201 - whoever started it waits
        await asyncio.Event().wait()


if __name__ == "__main__":
    _, where, polled, folder, ending = sys.argv
    asyncio.run(serve(where, polled, Path(folder), dies=ending == "dies"))
