"""Budgets: a run that has spent one goes to a person with what it knows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import pytest
from pydantic import JsonValue
from temporalio import activity

from activities.reads import READ_HANDLERS, RawRead, TransientReadError
from tests.workflow.decisions import TIMEOUT, final, lookup, policy
from tests.workflow.runs import outcome
from tests.workflow.world import World, altered_world
from triage.contracts.names import ACTIVITY_DECIDE
from triage.contracts.payloads import DecideOutcome, DecideRequest, DecideResult, Usage
from triage.contracts.response import Status
from triage.policy.rules import Rules

SPENT = (Status.REVIEW_REQUIRED, "budget_exceeded")
USAGE = Usage(tokens=100, cost_micros=7)


@activity.defn(name=ACTIVITY_DECIDE)
async def costly(request: DecideRequest) -> DecideResult:
    """Ask for the policy in every step, at a price; time out in the second."""
    if request.step == 2:
        return DecideResult(outcome=DecideOutcome.TIMEOUT, usage=USAGE)
    decision = policy("security")
    return DecideResult(outcome=DecideOutcome.DECISION, decision=decision, usage=USAGE)


@pytest.fixture(scope="module")
async def metered(world: World) -> AsyncIterator[World]:
    """A worker whose model costs 100 tokens and 7 micros a call."""
    async with altered_world(world, decide=costly) as opened:
        yield opened


@pytest.mark.parametrize("name", ["tokens", "cost_micros", "seconds", "evidence_bytes"])
async def test_a_budget_of_zero_permits_no_step(world: World, name: str) -> None:
    """With nothing to spend the run ends before its first decision."""
    run = await world.start(lookup(), final("owners-api"), budget={name: 0})
    response = await run.response()
    assert (*SPENT, 0) == (*outcome(response), response.steps)
    assert name in response.reason
    # Validated, deciding, review.
    assert 3 == (await run.state()).version


LIMITS: list[tuple[dict[str, JsonValue], int]] = [
    ({"tokens": 100}, 1),
    ({"tokens": 101}, 2),
    ({"tokens": 300, "cost_micros": 8}, 2),
    ({"cost_micros": 21}, 3),
    ({"evidence_bytes": 1}, 1),
]


@pytest.mark.parametrize(("limits", "steps"), LIMITS, ids=range(len(LIMITS)))
async def test_a_spent_budget_ends_the_run_with_its_evidence(
    metered: World, limits: dict[str, JsonValue], steps: int
) -> None:
    """The first step that would begin with a budget spent does not begin; the evidence is kept."""
    response = await metered.play(max_steps=9, max_model_retries=9, budget=limits)
    assert (*SPENT, steps) == (*outcome(response), response.steps)
    assert ("policy-security",) == response.evidence_ids


async def test_lost_and_timed_out_calls_are_paid_for(metered: World) -> None:
    """What a call used is counted whether it ended in a decision or a timeout."""
    run = await metered.start(max_steps=3)
    assert "max_steps_exceeded" == (await run.response()).failure
    spent = (await run.state()).spent
    assert (300, 21) == (spent.tokens, spent.cost_micros)
    assert spent.evidence_bytes > 0


async def test_a_budget_that_is_not_reached_changes_nothing(world: World) -> None:
    """A run within its budgets ends as without them."""
    limits: JsonValue = {
        "tokens": 1,
        "cost_micros": 1,
        "seconds": 3_600,
        "evidence_bytes": 100_000,
    }
    script = [TIMEOUT, lookup(), final("owners-api")]
    response = await world.play(*script, budget=limits)
    assert (Status.COMPLETED, None, 1) == (*outcome(response), response.retries)


async def test_each_call_of_a_model_counts_as_an_attempt(metered: World) -> None:
    """A call that timed out is one, too."""
    response = await metered.play(max_steps=9, max_model_retries=9, budget={"model_attempts": 2})
    assert (*SPENT, 2) == (*outcome(response), response.steps)
    assert "model_attempts" in response.reason


async def test_each_try_of_a_tool_counts_as_an_attempt(world: World) -> None:
    """A tool is not tried more often than the budget holds, and what failed is charged."""
    tried: list[int] = []

    async def flaky(_arguments: Mapping[str, JsonValue], _rules: Rules) -> RawRead:
        tried.append(activity.info().attempt)
        raise TransientReadError

    handlers = {**READ_HANDLERS, "search_triage_policy": flaky}
    async with altered_world(world, handlers=handlers) as broken:
        limits: JsonValue = {"tool_attempts": 2}
        response = await broken.play(lookup(), policy(), final("owners-api"), budget=limits)
        assert ("review_required", "tool_error") == outcome(response)
        assert [1] == tried


async def test_a_spent_budget_of_tool_attempts_ends_the_run(world: World) -> None:
    """After the last attempt no step begins, and the evidence is kept."""
    response = await world.play(lookup(), final("owners-api"), budget={"tool_attempts": 1})
    assert (*SPENT, ("owners-api",)) == (*outcome(response), response.evidence_ids)
