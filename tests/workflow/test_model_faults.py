"""What a run does without a decision: it asks again, corrects, takes the next model, or ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest
from pydantic import JsonValue
from temporalio import activity

from activities.decide import DecideActivities
from tests.fixed_rules import rules_with
from tests.workflow.decisions import a_request, as_object, final, lookup
from tests.workflow.runs import Run, eventually, outcome
from tests.workflow.world import World, altered_world
from triage.contracts.model_faults import MAX_RETRY_AFTER_SECONDS, MODEL_FAULTS, ModelFault
from triage.contracts.names import ACTIVITY_DECIDE
from triage.contracts.payloads import DecideOutcome, DecideRequest, DecideResult
from triage.contracts.response import Status
from triage.story.parts import Kind
from triage.story.telling import tell

GOOD: Final = [lookup(), final("owners-api")]
RETRIES: Final[dict[str, Any]] = {"max_steps": 9, "max_model_retries": 2}


def fault(name: str, retry_after_seconds: int | None = None) -> JsonValue:
    """An item of a script: the model gives no decision, with this fault."""
    return {"fault": name, "retry_after_seconds": retry_after_seconds}


@asynccontextmanager
async def _faulty(
    world: World, **rules: object
) -> AsyncIterator[tuple[World, list[DecideRequest]]]:
    """A worker whose recorded models have faults, and what they were asked."""
    services = replace(world.services, rules=rules_with(**rules))
    asked: list[DecideRequest] = []
    real = DecideActivities(services)

    @activity.defn(name=ACTIVITY_DECIDE)
    async def decide(request: DecideRequest) -> DecideResult:
        asked.append(request)
        result = await real.decide(request)
        item = result.decision
        if not isinstance(item, dict) or "fault" not in item:
            return result
        named = ModelFault(str(as_object(item)["fault"]))
        after = item["retry_after_seconds"]
        unanswered = MODEL_FAULTS[named].failure == "model_timeout"
        return DecideResult(
            outcome=DecideOutcome.TIMEOUT if unanswered else DecideOutcome.INVALID,
            fault=named,
            retry_after_seconds=after if isinstance(after, int) else None,
        )

    async with altered_world(world, services=services, decide=decide) as opened:
        yield opened, asked


async def _notes(run: Run) -> list[tuple[str, str, int]]:
    return [(f.fault, f.then, f.wait_seconds) for f in (await run.state()).model_faults]


async def _took(run: Run) -> timedelta:
    events = await run.events()
    return events[-1].event_time.ToDatetime() - events[0].event_time.ToDatetime()


@pytest.mark.parametrize("named", list(ModelFault))
async def test_each_fault_ends_by_its_name(skipping_world: World, named: ModelFault) -> None:
    """With no retry, no correction and no other model a run ends with the class of the fault."""
    async with _faulty(skipping_world) as (world, _):
        run = await world.start(fault(named.value), max_steps=9, max_model_retries=0)
        response = await run.response()
        info = MODEL_FAULTS[named]
        assert info.failure == response.failure
        assert f"{info.meaning} ({named.value})" == response.reason
        assert [(named.value, "end", 0)] == await _notes(run)


@pytest.mark.parametrize("named", [f for f, info in MODEL_FAULTS.items() if not info.passes])
async def test_a_fault_that_stays_is_not_asked_about_again(
    skipping_world: World, named: ModelFault
) -> None:
    """However many retries are left, the same call is not repeated where that cannot help."""
    async with _faulty(skipping_world) as (world, asked):
        response = await world.play(fault(named.value), *GOOD, **RETRIES)
        assert (MODEL_FAULTS[named].failure, 0) == (response.failure, response.retries)
        assert 1 == len(asked)


async def test_a_run_pauses_as_long_as_the_provider_says(skipping_world: World) -> None:
    """A rate limit is waited out on a durable timer, a retry is counted, and it costs a step."""
    async with _faulty(skipping_world) as (world, _):
        run = await world.start(fault("rate_limited", 600), *GOOD, **RETRIES)
        response = await run.response()
        assert (Status.COMPLETED, None) == outcome(response)
        assert (3, 1) == (response.steps, response.retries)
        assert [("rate_limited", "retry", 600)] == await _notes(run)
        assert timedelta(minutes=10) <= await _took(run) < timedelta(minutes=12)


async def test_no_provider_stops_a_run_for_ever(skipping_world: World) -> None:
    """A pause is clamped, whatever the provider names."""
    async with _faulty(skipping_world) as (world, _):
        run = await world.start(fault("overloaded", 999_999_999), *GOOD, **RETRIES)
        assert (Status.COMPLETED, None) == outcome(await run.response())
        assert [("overloaded", "retry", MAX_RETRY_AFTER_SECONDS)] == await _notes(run)


async def test_pauses_grow_where_the_provider_names_none(skipping_world: World) -> None:
    """Each pause is twice as long as the one before."""
    async with _faulty(skipping_world) as (world, _):
        run = await world.start(*[fault("unreachable")] * 2, *GOOD, **RETRIES)
        assert (Status.COMPLETED, None) == outcome(await run.response())
        assert [2, 4] == [wait for _, _, wait in await _notes(run)]


async def test_no_pause_outlasts_the_budget(skipping_world: World) -> None:
    """A run that has not the time for the pause ends at once, with a person."""
    async with _faulty(skipping_world) as (world, _):
        run = await world.start(
            fault("rate_limited", 600), *GOOD, budget={"seconds": 300}, **RETRIES
        )
        assert ("review_required", "model_timeout") == outcome(await run.response())
        assert await _took(run) < timedelta(minutes=5)
        told = [beat.text for beat in tell(await run.events()).beats if beat.kind is Kind.MODEL]
        assert "the run's time ends before a pause of 600 seconds is over" in told[0]


async def test_an_edit_ends_a_pause(world: World) -> None:
    """Whoever corrects the request does not wait for the provider."""
    async with _faulty(world) as (faulty, _):
        run = await faulty.start(fault("rate_limited", 800), *GOOD, **RETRIES)

        async def paused() -> bool | None:
            return bool((await run.state()).model_faults) or None

        await eventually(paused)
        await run.signal("edit", a_request(title="Another title"))
        assert (Status.COMPLETED, None) == outcome(await run.response())


@pytest.mark.parametrize("named", ["quota", "auth", "refusal", "protocol_error"])
async def test_the_next_model_is_asked(skipping_world: World, named: str) -> None:
    """Where the rules name other models, one that gives no answer is left for the next."""
    async with _faulty(skipping_world, fallback_models=("rules",)) as (world, asked):
        run = await world.start(fault(named), max_steps=9)
        assert (Status.COMPLETED, None) == outcome(await run.response())
        assert [(named, "fallback", 0)] == await _notes(run)
        assert ["rules"] == list(dict.fromkeys(request.model for request in asked[1:]))


async def test_the_list_of_models_has_an_end(skipping_world: World) -> None:
    """Each model is left once, and the last one's fault ends the run."""
    async with _faulty(skipping_world) as (world, _):
        second = await world.store_script([lookup(), fault("auth")])
    async with _faulty(skipping_world, fallback_models=(second,)) as (world, asked):
        run = await world.start(fault("quota"), max_steps=9)
        assert ("review_required", "model_timeout") == outcome(await run.response())
        assert [("quota", "fallback", 0), ("auth", "end", 0)] == await _notes(run)
        assert 2 == len(asked)


@pytest.mark.parametrize("bad", [fault("not_json"), {"kind": "nonsense"}], ids=["adapter", "loop"])
async def test_an_answer_is_corrected_once_where_the_rules_say_so(
    skipping_world: World, bad: JsonValue
) -> None:
    """The model is told in our words what was wrong; a second bad answer ends the run."""
    async with _faulty(skipping_world, max_corrections=1) as (world, asked):
        assert (Status.COMPLETED, None) == outcome(await world.play(bad, *GOOD, max_steps=9))
        corrections = [request.correction for request in asked]
        assert (None, None) == (corrections[0], corrections[2])
        assert corrections[1]
        again = await world.play(bad, bad, *GOOD, max_steps=9)
        assert ("failed", "model_invalid_output", 2) == (*outcome(again), again.steps)


async def test_nothing_is_corrected_by_default(skipping_world: World) -> None:
    """Without that rule an answer that is no decision ends the run."""
    async with _faulty(skipping_world) as (world, asked):
        assert ("failed", "model_invalid_output") == outcome(
            await world.play(fault("not_json"), *GOOD, max_steps=9)
        )
        assert 1 == len(asked)


async def test_a_shared_budget_that_is_spent_goes_to_a_person(skipping_world: World) -> None:
    """What the activity refused is no fault of the model: the run ends with what it knows."""

    @activity.defn(name=ACTIVITY_DECIDE)
    async def decide(request: DecideRequest) -> DecideResult:
        spent = "today's budget of the repository is spent"
        if request.step == 1:
            return DecideResult(outcome=DecideOutcome.DECISION, decision=lookup())
        return DecideResult(outcome=DecideOutcome.EXHAUSTED, detail=spent)

    async with altered_world(skipping_world, decide=decide) as world:
        response = await world.play(max_steps=9)
        assert ("review_required", "budget_exceeded") == outcome(response)
        assert ("today's budget of the repository is spent", ("owners-api",)) == (
            response.reason,
            response.evidence_ids,
        )
