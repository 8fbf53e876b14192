"""Random decision scripts through the real workflow, against the independent model of the loop.

More of them: ``pytest tests/workflow/test_properties.py --hypothesis-profile=deep``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from pydantic import JsonValue

from activities.reads import READ_HANDLERS, RawRead, TransientReadError, lookup_component_owner
from tests.workflow.decisions import ISSUE
from tests.workflow.loop_model import LoopModel, Outcome
from tests.workflow.runs import Run, envelope
from tests.workflow.scripts import BROKEN, options, scripts, verdicts
from tests.workflow.world import World, altered_world
from triage.policy.rules import Rules

EXAMPLES = 1_000 if settings.get_current_profile_name() == "deep" else 25


async def _lookup(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
    """Fail for the paths that stand for a broken source."""
    match arguments["path"]:
        case "broken":
            raise RuntimeError
        case "flaky":
            raise TransientReadError
        case "slow":
            raise TimeoutError
    return await lookup_component_owner(arguments, rules)


@pytest.fixture(scope="module")
async def partly_broken(world: World) -> AsyncIterator[World]:
    """A worker on which some lookups fail."""
    async with altered_world(
        world, handlers={**READ_HANDLERS, "lookup_component_owner": _lookup}
    ) as opened:
        yield opened


async def _answer(run: Run, waited_at: Sequence[int], verdicts: Sequence[str]) -> None:
    """Answer as a person would, at each version where the model expects the run to wait."""
    for number, version in enumerate(waited_at):
        pending = await run.waiting_at(version)
        verdict = verdicts[number % len(verdicts)]
        if number % 2:
            await run.signal(verdict, envelope(pending))
        else:
            await run.update({**envelope(pending), "verdict": verdict})


async def _found(world: World, run: Run, waited_at: list[int]) -> Outcome:
    response = (await run.response()).model_dump(mode="json")
    del response["reason"]
    state = await run.state()
    mutations = [record.model_dump(mode="json") for record in await run.mutations()]
    return Outcome(response, state.version, mutations, await world.written(run), waited_at)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(script=scripts(), options=options(), verdicts=verdicts())
async def test_every_script_ends_as_the_model_says(
    partly_broken: World, script: list[JsonValue], options: dict[str, Any], verdicts: list[str]
) -> None:
    """Response, version, mutations, written labels and waits are those of the plain model."""
    expected = LoopModel(
        issue=ISSUE, script=script, verdicts=verdicts, broken=BROKEN, **options
    ).play()
    event(f"{expected.response['status']}, {expected.response['failure']}")
    event(f"{len(expected.waited_at)} waits, {len(expected.written)} labels")
    run = await partly_broken.start(*script, **options)
    async with asyncio.timeout(180):
        await _answer(run, expected.waited_at, verdicts)
        found = await _found(partly_broken, run, expected.waited_at)
    assert expected == found
    assert [] == await run.task_failures()
