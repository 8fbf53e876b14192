"""Questions that come along with the activity before them: the same run, in fewer events."""

from __future__ import annotations

from typing import Any, Final

import pytest
from pydantic import JsonValue
from temporalio import activity

from activities.run_context import RunContextActivities
from tests.workflow.decisions import a_request, hand_over
from tests.workflow.runs import Run, outcome
from tests.workflow.world import World, altered_world
from triage.cli.briefing import ModelText
from triage.cli.briefing_model import model_text
from triage.cli.clients import find_run
from triage.contracts.canonical import abbreviated, digest_of
from triage.contracts.names import ACTIVITY_DECIDE, ACTIVITY_LOOKUP_OWNER, ACTIVITY_PIN_RUN_CONTEXT
from triage.contracts.payloads import DecideOutcome, DecideResult, PinRequest, RunContext
from triage.contracts.request import parse_request
from triage.contracts.response import Status
from triage.story.calls import local_call

PIN, ASK, READ = ACTIVITY_PIN_RUN_CONTEXT, ACTIVITY_DECIDE, ACTIVITY_LOOKUP_OWNER
EDITED: Final[JsonValue] = a_request(title="The changelog is out of date", body="So.")
BOUNDED: Final[JsonValue] = {"seconds": 3_600}


async def _local(run: Run) -> list[str]:
    """Return the local activities of a run that has ended, in order."""
    await run.response()
    done = [local_call(event) for event in await run.events()]
    return [one.call.name for one in done if one is not None]


async def test_a_question_comes_along_with_what_it_follows_from(world: World) -> None:
    """The first question is asked while the run is pinned, and each later one by the read."""
    run = await world.start(model="rules")
    assert [PIN, READ] == await _local(run)


async def test_a_run_with_a_budget_asks_by_itself_and_comes_to_the_same(world: World) -> None:
    """Any budget may forbid the next step, so no question is asked before it has been looked at."""
    plain = await world.start(model="rules")
    bounded = await world.start(model="rules", budget=BOUNDED)
    assert [PIN, ASK, READ, ASK] == await _local(bounded)
    assert outcome(await plain.response()) == outcome(await bounded.response())
    states = [await run.state() for run in (plain, bounded)]
    alike = {"decisions", "version", "steps", "evidence", "tool_sequence"}
    one, other = [state.model_dump(include=alike) for state in states]
    assert one == other


@pytest.mark.parametrize("max_steps", [0, 1, 2])
async def test_no_question_comes_along_that_no_step_is_left_for(
    world: World, max_steps: int
) -> None:
    """A run that may not take a step asks nothing for it, wherever its bound comes from."""
    run = await world.start(model="rules", max_steps=max_steps)
    assert [[PIN], [PIN, READ], [PIN, READ]][max_steps] == await _local(run)
    kinds = [decision.kind for decision in (await run.state()).decisions]
    assert ["call_tool", "final"][:max_steps] == kinds
    answers = [local_call(event) for event in await run.events()]
    brought = [done.result.fields("answer").readable for done in answers if done is not None]
    assert [[False], [True, False], [True, True]][max_steps] == brought


@pytest.mark.parametrize("wrong", [{"step": 2}, {"version": 3}, {"request_digest": "sha256:0"}])
async def test_an_answer_to_another_question_is_not_taken(
    world: World, wrong: dict[str, Any]
) -> None:
    """What came along counts where the run would have asked the very same, and nowhere else."""
    pinned = RunContextActivities(world.services).pin

    @activity.defn(name=PIN)
    async def pin(request: PinRequest) -> RunContext:
        context = await pinned(request)
        assert context.answer is not None
        assert context.answer.asked is not None
        asked = context.answer.asked.model_copy(update=wrong)
        other = DecideResult(outcome=DecideOutcome.DECISION, decision=hand_over(), asked=asked)
        return context.model_copy(update={"answer": other})

    async with altered_world(world, pin=pin) as opened:
        run = await opened.start(model="rules")
        assert [PIN, ASK, READ] == await _local(run)
        assert Status.COMPLETED is (await run.response()).status


async def test_what_was_edited_before_it_was_read_is_not_answered(world: World) -> None:
    """An edit that came with the start is decided on as if the run had begun with it."""
    edited = await world.start(model="rules", start_signal=("edit", EDITED))
    begun = await world.start(model="rules", request=EDITED)
    assert [PIN, PIN, ASK, READ] == await _local(edited)
    assert outcome(await begun.response()) == outcome(await edited.response())
    evidence = [[item.id for item in (await run.state()).evidence] for run in (begun, edited)]
    assert evidence[0] == evidence[1]


@pytest.mark.parametrize("options", [{}, {"budget": BOUNDED}], ids=["along", "alone"])
async def test_a_reviewer_sees_the_latest_answer_however_it_was_asked_for(
    world: World, options: dict[str, Any]
) -> None:
    """What the model said comes with the request that it was given, out of the last answer."""
    run = await world.start(model="rules", mode="approve", **options)
    await run.waiting()
    shown = await model_text(world.client, await find_run(world.client, run.id))
    assert isinstance(shown, ModelText)
    assert ("final", "bug") == (shown.kind, shown.route)
    given = parse_request(a_request()).model_dump(mode="json")
    assert abbreviated(digest_of(given)) == shown.request_digest
