"""Tools that are slow, fail, recover or return what nobody can use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue

from activities.reads import READ_HANDLERS, RawRead, ReadHandler, TransientReadError
from tests.workflow.decisions import call, final, hand_over, lookup, policy
from tests.workflow.runs import outcome
from tests.workflow.world import World, altered_world
from triage.contracts.canonical import short_hash
from triage.contracts.response import Status
from triage.policy.rules import Rules
from triage.policy.tools import BUILTIN_TOOLS, RetryRule, ToolRegistry

OWNER = "lookup_component_owner"
SECRET = "ghp_" + "a1B2" * 9
GOOD: dict[str, JsonValue] = {"owner": "backend-team", "evidence_id": "owners-api"}

LONG: dict[str, Any] = {"max_elapsed_seconds": 3_600}

attempts: dict[str, int] = {}


async def _behave(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
    """Do what the path asks for, and count the attempts on it."""
    path = str(arguments["path"])
    attempts[path] = attempts.get(path, 0) + 1
    match path.partition("#")[0]:
        case "slow":
            await asyncio.sleep(30)
        case "transient":
            raise TransientReadError
        case "recovers":
            if attempts[path] < 3:
                raise TransientReadError
        case "raises":
            raise RuntimeError(f"the password is {SECRET}")
        case "times out itself":
            raise TimeoutError
    return RawRead(_value_of(path), source="tests", locator="tests@1")


def _value_of(path: str) -> JsonValue:
    values: dict[str, JsonValue] = {
        "a list": [GOOD],
        "no evidence id": {"owner": "backend-team"},
        "an empty evidence id": {**GOOD, "evidence_id": ""},
        "oversize": {**GOOD, "text": "x" * 16_384},
        "deep": {**GOOD, "text": _nested(60)},
        "a secret": {**GOOD, "text": f"token {SECRET}"},
    }
    return values.get(path.partition("#")[0], GOOD)


def _nested(depth: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.fixture(scope="module")
async def faulty(world: World) -> AsyncIterator[World]:
    """A worker whose owner lookup does what its path says."""
    handlers: dict[str, ReadHandler] = {**READ_HANDLERS, OWNER: _behave}
    services = replace(world.services, tools=_patient(world.services.tools))
    async with altered_world(world, services=services, handlers=handlers) as opened:
        yield opened


def _patient(tools: ToolRegistry) -> ToolRegistry:
    """Let tries end by their number alone: a machine that stands still uses up their time."""
    return ToolRegistry(
        *(
            spec if spec.side_effect else replace(spec, retry=replace(spec.retry, **LONG))
            for spec in tools
        )
    )


FAULTS = {
    "slow": ("tool_timeout", 3),
    "times out itself": ("tool_timeout", 3),
    "transient": ("tool_error", 3),
    "raises": ("tool_error", 1),
    "a list": ("tool_error", 1),
    "no evidence id": ("tool_error", 1),
    "an empty evidence id": ("tool_error", 1),
    "oversize": ("tool_error", 1),
    "deep": ("tool_error", 1),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_read_that_fails_without_evidence_fails_the_run(faulty: World, fault: str) -> None:
    """A slow tool is a tool_timeout, another failure a tool_error, each tried as its rule says."""
    failure, tries = FAULTS[fault]
    run = await faulty.start(lookup(f"{fault}#1"), final("owners-api"))
    response = await run.response()
    assert (Status.FAILED, failure) == outcome(response)
    assert ((), (OWNER,)) == (response.evidence_ids, response.tool_sequence)
    assert tries == attempts[f"{fault}#1"]
    # Pending at 3, and from there straight to its end.
    assert 4 == (await run.state()).version


@pytest.mark.parametrize("fault", FAULTS)
async def test_partial_evidence_is_kept_for_a_person(faulty: World, fault: str) -> None:
    """A read that fails after another succeeded ends in review, with all earlier evidence."""
    script = [policy(), policy(), policy("feature"), lookup(f"{fault}#2"), final("policy-security")]
    response = await faulty.play(*script, max_steps=5)
    assert (Status.REVIEW_REQUIRED, FAULTS[fault][0]) == outcome(response)
    assert ("policy-security", "policy-feature") == response.evidence_ids
    assert (None, ()) == (response.route, response.labels)


async def test_a_tool_that_recovers_costs_nothing_visible(faulty: World) -> None:
    """Transient faults within a tool's retry rule leave the run as if there had been none."""
    run = await faulty.start(lookup("recovers#3"), final("owners-api"))
    response = await run.response()
    assert (Status.COMPLETED, None, 0, 2) == (*outcome(response), response.retries, response.steps)
    assert 3 == attempts["recovers#3"]


async def test_the_text_of_a_tools_error_goes_nowhere(faulty: World) -> None:
    """What a tool raises is named by class: its message is in neither answer nor history."""
    run = await faulty.start(lookup("raises#4"), hand_over())
    assert "password" not in (await run.response()).model_dump_json()
    assert "password" not in (await run.handle.fetch_history()).to_json()


async def test_a_secret_in_a_tools_result_is_not_kept(faulty: World) -> None:
    """A credential that a tool returns reaches neither the history nor the evidence store."""
    run = await faulty.start(lookup("a secret#5"), final("owners-api"))
    assert Status.COMPLETED is (await run.response()).status
    assert SECRET not in (await run.handle.fetch_history()).to_json()
    [row] = await _evidence(faulty, run.id, (await run.handle.describe()).run_id)
    assert row is not None
    assert b"[redacted:github_pat_classic]" in row


async def test_arguments_of_a_tool_are_data(faulty: World) -> None:
    """A path that looks like a template, a shell or an SQL command is looked up like any other."""
    for path in ("'; DROP TABLE evidence; --", "$(reboot)", "../../etc/passwd", "\x00", "%s{0}"):
        response = await faulty.play(call(OWNER, {"path": path}), final("owners-api"))
        assert (Status.COMPLETED, None) == outcome(response)


async def _evidence(world: World, run_id: str, first_run: str | None) -> list[bytes | None]:
    assert first_run
    scope = short_hash("default", run_id, first_run)
    return [row.content for row in await world.services.evidence.load(scope, 1_000)]


@pytest.mark.long
async def test_what_failed_before_takes_no_time_from_an_attempt(world: World) -> None:
    """A read that waits, and then takes its time, is not ended by the deadline of what failed."""
    tried = 0

    async def slowly(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
        nonlocal tried
        tried += 1
        if tried == 1:
            raise TransientReadError(6)
        # With the pause, past the deadline of the first attempt, whoever kept that.
        await asyncio.sleep(1.9)
        return RawRead(GOOD, source="tests", locator="tests@1")

    patience = RetryRule(max_attempts=3, backoff_seconds=0.1, max_elapsed_seconds=30)
    reads = [spec for spec in BUILTIN_TOOLS if not spec.side_effect]
    tools = ToolRegistry(*(replace(spec, timeout_ms=2_000, retry=patience) for spec in reads))
    services = replace(world.services, tools=tools)
    handlers: dict[str, ReadHandler] = {**READ_HANDLERS, OWNER: slowly}
    async with altered_world(world, services=services, handlers=handlers) as opened:
        run = await opened.start(lookup(), final("owners-api"))
        assert (Status.COMPLETED, 2) == ((await run.response()).status, tried)
