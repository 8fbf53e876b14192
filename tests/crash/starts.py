"""The command that starts a run is disturbed, and given again."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from temporalio.client import Client

from tests.crash.nursery import Process
from tests.crash.places import Action, Place
from tests.crash.plays import Seen
from tests.crash.scenarios import REPOSITORY
from tests.crash.scene import SECONDS, Cell, Handle
from tests.workflow.decisions import a_request
from triage.contracts.response import TriageResponse
from triage.faults import Point

STARTED: Final = 0
REFUSED: Final = 1
IN_VAIN: Final = range(1, 4)
"""A command that stood still says that it was refused, or that it has waited too long."""


async def play_start(cell: Cell, place: Place, action: Action) -> Seen:
    """Disturb `triage start`, give the command again, and let the run end."""
    worker = await cell.worker()
    command = _command(cell)
    began = place.point == Point.START_AFTER_RUN
    first = Process(cell.job(place, action, command))
    if action is Action.KILL:
        assert -9 == await _status(first), cell.log()
    else:
        await first.frozen()
    assert (REFUSED if began else STARTED) == await _status(_again(cell, command)), cell.log()
    handle = _handle(cell.client, cell)
    await cell.approve(handle)
    before = after = await cell.record(handle)
    if action is Action.FREEZE:
        first.go_on()
        status = await _status(first)
        assert status in IN_VAIN or (began and status == STARTED), cell.log()
        after = await cell.record(handle)
    assert REFUSED == await _status(_again(cell, command)), cell.log()
    await worker.kill()
    return Seen(first=before, second=after)


def _command(cell: Cell) -> tuple[str, ...]:
    home = cell.settings.home
    (home / "request.json").write_text(json.dumps(a_request()), encoding="utf-8")
    options = {"mode": "approve", "context": {"repository": REPOSITORY}}
    (home / "options.json").write_text(json.dumps(options), encoding="utf-8")
    names = ("request.json", "--options", "options.json")
    paths = tuple(str(home / n) if n.endswith(".json") else n for n in names)
    return ("start", *paths, "--id", home.name)


def _again(cell: Cell, command: tuple[str, ...]) -> Process:
    return Process(cell.job(None, Action.KILL, command))


async def _status(process: Process) -> int:
    async with asyncio.timeout(SECONDS):
        return await process.ended()


def _handle(client: Client, cell: Cell) -> Handle:
    return client.get_workflow_handle(cell.settings.home.name, result_type=TriageResponse)
