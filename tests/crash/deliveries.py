"""The process that takes deliveries is disturbed, and another one is sent the delivery again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from pydantic import SecretStr
from sqlalchemy import select
from temporalio.client import WorkflowHandle

from tests.crash.nursery import Process
from tests.crash.places import Action, Place
from tests.crash.plays import Seen
from tests.crash.records import Record
from tests.crash.scenarios import REPOSITORY
from tests.crash.scene import LOOK_EVERY_SECONDS, SECONDS, Cell
from tests.fakes.http_client import Answer, Call, NoAnswer, NotSent, exchange
from tests.web.hooks import SECRET, an_event, encoded, headers_for
from triage.contracts.canonical import parse_json
from triage.contracts.names import QUERY_STATE
from triage.contracts.response import TriageResponse
from triage.contracts.state import StateView
from triage.embedded import HOST
from triage.storage.engine import Store
from triage.storage.schema import requests

SERVING: Final = "serving on "
DELIVERY: Final = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
ACCEPTED: Final = 202


@dataclass(frozen=True)
class _Server:
    cell: Cell
    process: Process
    url: str

    async def deliver(self) -> Answer:
        """Send the one delivery of a cell."""
        body = encoded(an_event(number=_number(self.cell), repository=REPOSITORY))
        headers = headers_for(body, X_GitHub_Delivery=DELIVERY)
        return await exchange(
            Call(
                method="POST",
                url=f"{self.url}/webhooks/github",
                headers=headers,
                body=body,
                deadline=asyncio.get_running_loop().time() + SECONDS,
                max_bytes=100_000,
            )
        )


async def delivered_undisturbed(cell: Cell) -> Record:
    """Let one process take the delivery and start its run."""
    cell = await _prepared(cell)
    worker, server = await cell.worker(), await _server(cell)
    record = await _record(cell, _run(cell, await server.deliver()))
    await asyncio.gather(worker.kill(), server.process.kill())
    return record


async def play_delivery(cell: Cell, place: Place, action: Action) -> Seen:
    """Disturb the first process, and deliver to the second what the first may have."""
    cell = await _prepared(cell)
    worker, first = await cell.worker(), await _server(cell, place, action)
    sending = asyncio.create_task(_delivered(first))
    if action is Action.KILL:
        assert -9 == await first.process.ended(), cell.log()
    else:
        await first.process.frozen()
    second = await _server(cell)
    handle = _run(cell, await second.deliver())
    before = after = await _record(cell, handle)
    if action is Action.FREEZE:
        first.process.go_on()
        assert 0 == await first.process.stop(), cell.log()
        after = await _record(cell, handle)
    assert await sending in {None, ACCEPTED}
    await asyncio.gather(worker.kill(), second.process.kill())
    return Seen(first=before, second=after)


def _number(cell: Cell) -> int:
    """Give each cell an issue of its own, since the run's name follows from the issue's."""
    return crc32(cell.name.encode())


async def _prepared(cell: Cell) -> Cell:
    assert cell.tracker
    number = str(_number(cell))
    await cell.tracker.open_issue(REPOSITORY, number, title="Orders fail", body="Always.")
    secret = {"webhook_secret": SecretStr(SECRET)}
    return replace(cell, settings=cell.settings.model_copy(update=secret))


async def _server(cell: Cell, place: Place | None = None, action: Action = Action.KILL) -> _Server:
    job = cell.job(place, action, ("serve", "--host", HOST, "--port", "0"))
    process = Process(job)
    assert await process.ready(SERVING), cell.log()
    return _Server(cell, process, _url(job.log))


def _url(log: Path) -> str:
    """Return where a process serves: a port of its own choice is nobody else's meanwhile."""
    lines = log.read_text(encoding="utf-8").splitlines()
    [line] = [line for line in lines if line.startswith(SERVING)]
    return line.removeprefix(SERVING)


async def _delivered(server: _Server) -> int | None:
    """Return the status that the first process answered, or None if it gave no answer."""
    try:
        return (await server.deliver()).status
    except (NotSent, NoAnswer):
        return None


def _run(cell: Cell, answer: Answer) -> WorkflowHandle[Any, TriageResponse]:
    told = parse_json(answer.body, "the answer")
    assert (ACCEPTED, True) == (answer.status, isinstance(told, dict)), answer
    assert isinstance(told, dict)
    name = f"issue-{told['request']}"
    return cell.client.get_workflow_handle(name, result_type=TriageResponse)


async def _started(cell: Cell, workflow_id: str) -> None:
    """Return once whoever holds the request has recorded its run."""
    r = requests.c
    recorded = select(r.request_key).where(r.state == "started", r.workflow_id == workflow_id)
    store = await Store.open(cell.settings.database_url)
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                async with store.read() as connection:
                    if (await connection.execute(recorded)).first():
                        return
                await asyncio.sleep(LOOK_EVERY_SECONDS)
    finally:
        await store.close()


async def _runs(cell: Cell) -> int:
    """Count the runs of a cell, once the server's list has any: it lags behind."""
    query = f"TaskQueue = '{cell.settings.task_queue}'"
    while not (found := (await cell.client.count_workflows(query)).count):  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(LOOK_EVERY_SECONDS)
    return found


async def _record(cell: Cell, handle: WorkflowHandle[Any, TriageResponse]) -> Record:
    """Return what the run did, once the store says that there is one and it has ended."""
    await _started(cell, handle.id)
    response = await cell.answer(handle)
    view = await handle.query(QUERY_STATE, result_type=StateView)
    record = await cell.witness(handle.id, str(_number(cell))).record(response, view)
    assert 1 == await _runs(cell)
    nameless = response.model_copy(update={"run_id": "", "request_id": ""})
    return replace(record, response=nameless)
