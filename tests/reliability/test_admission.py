"""Requests that come twice, and a command that dies while it starts a run."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from tests.cli.conftest import FIXTURES, id_in
from tests.reliability.commands import Shell
from tests.workflow.runs import Run
from tests.workflow.world import World, a_settings
from triage.cli.errors import RefusedError
from triage.cli.orders import Checked
from triage.cli.starting import begin
from triage.contracts.response import Status, TriageResponse

EXISTS = "exists already; nothing was started"


@pytest.fixture
def shell(tmp_path: Path, world: World) -> Shell:
    """A terminal in a folder of its own."""
    return Shell(tmp_path, world.client)


def _run(client: Client, request: Path) -> Run:
    name = f"triage-{id_in(request)}"
    return Run(client.get_workflow_handle(name, result_type=TriageResponse))


async def _execution(run: Run) -> str | None:
    """Return which execution has the name of a run, or None if none ever had it."""
    try:
        return (await run.handle.describe()).run_id
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return None


@pytest.mark.parametrize("place", ["before", "after"])
async def test_fault_01_a_killed_start_is_repeated_and_starts_one_run(
    world: World, shell: Shell, place: str
) -> None:
    """Killed right before or right after the run began: the same command again leaves one run."""
    request = shell.request()
    run = _run(world.client, request)
    killed = await shell.killed_triage(place, "start", request)
    assert (-signal.SIGKILL, "") == (killed.status, killed.out)
    first = await _execution(run)
    assert (place == "after") == (first is not None)
    again = await shell.triage("start", request)
    assert (int(place == "after"), place == "after") == (again.status, EXISTS in again.err)
    assert Status.COMPLETED is (await run.response()).status
    only = await _execution(run)
    assert first in {None, only}
    last = await shell.triage("start", request)
    assert (1, True, only) == (last.status, EXISTS in last.err, await _execution(run))


async def test_fault_02_a_request_that_comes_again_starts_nothing(
    world: World, shell: Shell
) -> None:
    """After its run ended, the same request, or another text under its id, is refused in words."""
    request = shell.request()
    run = _run(world.client, request)
    started = await shell.triage("start", request, "--mode", "approve")
    assert (0, f"{run.id}\n") == (started.status, started.out)
    await run.review("approve")
    response = await run.response()
    state, execution = await run.state(), await _execution(run)
    changed = shell.request(request_id=id_in(request), body="Another text")
    other = shell.request()
    answers = [
        await shell.triage("start", request, "--mode", "approve"),
        await shell.triage("start", request, "--wait", "--format", "json"),
        await shell.triage("start", changed),
        await shell.triage("start", other, "--id", run.id),
    ]
    assert [(1, "")] * 4 == [(answer.status, answer.out) for answer in answers]
    assert all(f"{run.id} {EXISTS}" in answer.err for answer in answers)
    assert (execution, state) == (await _execution(run), await run.state())
    assert response == await run.response()
    assert await _execution(_run(world.client, other)) is None


async def test_fault_02_the_plain_program_starts_nothing_either(world: World, shell: Shell) -> None:
    """With the options that README.md gives, the server itself refuses the second start."""
    request = shell.request()
    run = _run(world.client, request)
    command = (
        *("workflow", "start", "--type", "IssueTriage", "--task-queue", world.queue),
        *("--workflow-id", run.id, "--input-file", str(request)),
        *("--fail-existing", "--id-reuse-policy", "RejectDuplicate"),
    )
    first = await shell.temporal(*command)
    await run.response()
    execution = await _execution(run)
    second = await shell.temporal(*command)
    assert (0, 1) == (first.status, second.status)
    assert "already" in second.err
    assert execution == await _execution(run)


async def test_fault_02_of_starts_at_once_one_begins(world: World, tmp_path: Path) -> None:
    """Twenty starts of one request at the same time begin one run; the others are refused."""
    document: dict[str, Any] = json.loads((FIXTURES / "requests" / "api-bug.json").read_bytes())
    name = f"at-once-{tmp_path.name}"
    order = Checked(name, document["request_id"], [document, {"mode": "shadow"}])
    settings = a_settings(tmp_path)
    answers = await asyncio.gather(
        *(begin(world.client, settings, order) for _ in range(20)), return_exceptions=True
    )
    [begun] = [answer for answer in answers if not isinstance(answer, BaseException)]
    refused = [str(answer) for answer in answers if isinstance(answer, RefusedError)]
    assert [f"a run {name} {EXISTS}"] * 19 == refused
    assert Status.COMPLETED is (await Run(begun).response()).status
    assert begun.first_execution_run_id == await _execution(Run(begun))
