"""What a model's answers cost: in money when a worker dies, and in bytes when they are many."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from pydantic import JsonValue
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from activities.reads import READ_HANDLERS, RawRead, lookup_component_owner
from tests.reliability.paid_worker import BILL, READY, TOKENS
from tests.workflow.decisions import API_PATH, a_request, final, lookup
from tests.workflow.runs import SECONDS, Run
from tests.workflow.world import World, altered_world
from triage.contracts.base import MAX_PATH_CHARS
from triage.contracts.canonical import canonical_json
from triage.contracts.response import Status
from triage.policy.rules import Rules
from triage.policy.tools import BUILTIN_TOOLS, MAX_RESULT_BYTES, ToolRegistry

STARTED: Final = EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED
SCHEDULED: Final = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED

STEPS: Final = 50
SERVER_EVENTS: Final = 51_200
SERVER_BYTES: Final = 50 * 1024 * 1024
"""At these the server terminates a run."""


@asynccontextmanager
async def _paid_worker(
    world: World, queue: str, home: Path, ending: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a worker process that pays for its answers, until the body ends or it dies."""
    address = world.client.service_client.config.target_host
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.reliability.paid_worker"),
        *(address, queue, str(home), ending),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout
        async with asyncio.timeout(SECONDS):
            assert READY == (await process.stdout.readline()).decode().strip()
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.slow
async def test_fault_07_an_answer_that_was_paid_for_and_lost_is_paid_for_once_more(
    world: World, tmp_path: Path
) -> None:
    """Killed between answer and hand-in: one more call, and only the recorded answer counts."""
    paying = replace(world, queue=f"paying-{tmp_path.name}")
    async with _paid_worker(paying, paying.queue, tmp_path, "dies") as first:
        run = await paying.start(model="rules")
        async with asyncio.timeout(SECONDS):
            assert -signal.SIGKILL == await first.wait()
    bill = tmp_path / BILL
    assert ["step 1"] == bill.read_text(encoding="utf-8").splitlines()
    async with _paid_worker(paying, paying.queue, tmp_path, "lives"):
        response = await run.response()
        state = await run.state()
    assert ["step 1"] * 2 == bill.read_text(encoding="utf-8").splitlines()
    assert (Status.REVIEW_REQUIRED, "the answer of call 2", 1) == (
        response.status,
        response.reason,
        response.steps,
    )
    attempts = [
        event.activity_task_started_event_attributes.attempt
        for event in await run.events()
        if event.event_type == STARTED
    ]
    assert [2] == attempts
    # The call that was lost is charged what its provider counted before the worker died.
    assert 2 * TOKENS == state.spent.tokens
    assert b"the answer of call 1" not in b"".join(
        event.SerializeToString() for event in await run.events()
    )


def _size(events: list[HistoryEvent]) -> int:
    return sum(event.ByteSize() for event in events)


async def _largest(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
    """Return the owner of a path, padded to the largest result that a tool may return."""
    found = await lookup_component_owner({"path": API_PATH}, rules)
    assert isinstance(found.value, dict)
    kept = {name: value for name, value in found.value.items() if name != "evidence_id"}
    room = MAX_RESULT_BYTES - len(canonical_json({**kept, "text": ""}))
    return replace(found, value={**found.value, "text": "x" * room})


async def _begun(run: Run) -> list[list[HistoryEvent]]:
    """Return the history up to each step: the first event is the start, with the request."""
    events = await run.events()
    decides = [
        number
        for number, event in enumerate(events)
        if event.event_type == SCHEDULED
        and event.activity_task_scheduled_event_attributes.activity_type.name == "decide"
    ]
    return [events[:number] for number in decides] + [events]


async def test_fault_08_fifty_long_steps_stay_far_from_the_server_s_limits(world: World) -> None:
    """A long request and 49 reads of the longest kind: less than a fifth of each, and linear."""
    request = a_request(body="b" * 1_000_000)
    script = [lookup("p" * MAX_PATH_CHARS)] * (STEPS - 1)
    tools = ToolRegistry(*(replace(spec, timeout_ms=5_000, local=False) for spec in BUILTIN_TOOLS))
    services = replace(world.services, tools=tools)
    handlers = {**READ_HANDLERS, "lookup_component_owner": _largest}
    async with altered_world(world, services=services, handlers=handlers) as opened:
        run = await opened.start(*script, final("owners-api"), request=request, max_steps=STEPS)
        response = await run.response(60)
    assert (Status.COMPLETED, STEPS) == (response.status, response.steps)
    begun = await _begun(run)
    assert STEPS + 1 == len(begun)
    whole = begun[-1]
    assert len(whole) < 0.2 * SERVER_EVENTS
    assert _size(whole) < 0.2 * SERVER_BYTES
    costs = [(_size(begun[to]) - _size(begun[to - 20])) / 20 for to in (20, 40)]
    assert abs(costs[1] - costs[0]) < 0.05 * costs[0], costs
