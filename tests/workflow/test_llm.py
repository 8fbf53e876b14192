"""A whole run over real HTTP: a provider that limits the rate, answers prose, and then decides."""

from __future__ import annotations

from dataclasses import replace

from pydantic import SecretStr

from tests.fakes.llm_server import OPENAI, answer, decided, error, llm_server
from tests.fixed_rules import rules_with
from tests.workflow.decisions import final, lookup
from tests.workflow.world import World, altered_world
from triage.contracts.response import Status
from triage.models.llm_prompt import prompt_digest
from triage.models.llm_setup import Endpoint, LlmSetup
from triage.policy.rules import DailyBudget

KEY = "sk-made-up-0123456789"


async def test_a_run_gets_through_a_provider_s_faults_and_says_so(world: World) -> None:
    """Each fault is on record with what followed, each call is charged, and no key is anywhere."""
    plan = [
        decided(OPENAI, lookup()),
        error(OPENAI, 429, "rate_limit_error", headers={"retry-after": "1"}),
        answer(OPENAI, "I would say that it is a bug."),
        decided(OPENAI, final("owners-api")),
    ]
    async with llm_server(OPENAI) as provider:
        provider.will(*plan)
        endpoint = Endpoint(base_url=provider.base_url, key=SecretStr(KEY))
        services = replace(
            world.services,
            llm=LlmSetup(endpoints={OPENAI: endpoint}),
            rules=rules_with(max_corrections=1, max_steps=4),
        )
        async with altered_world(world, services=services) as opened:
            run = await opened.start(model="openai:gpt-4o-mini")
            response = await run.response()
            state = await run.state()
            events = await run.events()
        asked = [request.json() for request in provider.requests]
    assert (Status.COMPLETED, "bug", 4, 1) == (
        response.status,
        response.route,
        response.steps,
        response.retries,
    )
    assert [("rate_limited", "retry", 1), ("not_json", "correct", 0)] == [
        (fault.fault, fault.then, fault.wait_seconds) for fault in state.model_faults
    ]
    assert "Your answer before was refused" in str(asked[3]["messages"])
    # Three answers were counted at 150 tokens; the one that was limited is charged as reserved.
    assert state.spent.tokens > 3 * 150 + 2_048
    assert prompt_digest() == state.provenance.prompt
    assert not [event for event in events if KEY.encode() in event.SerializeToString()]


async def test_a_spent_day_hands_runs_to_a_person(world: World) -> None:
    """The first run spends the author's budget; the next is not asked about and says why."""
    async with llm_server(OPENAI) as provider:
        provider.will(decided(OPENAI, lookup(), used=(5_000, 400)))
        services = replace(
            world.services,
            llm=LlmSetup(endpoints={OPENAI: Endpoint(base_url=provider.base_url)}),
            rules=rules_with(daily_budget=DailyBudget(author_tokens=8_000), max_steps=1),
        )
        async with altered_world(world, services=services) as opened:
            context = {"author": "eve", "tenant": "spent-day", "repository": "one"}
            first = await opened.start(model="openai:gpt-4o-mini", context=context)
            assert "max_steps_exceeded" == (await first.response()).failure
            second = await opened.start(model="openai:gpt-4o-mini", context=context)
            response = await second.response()
    assert (Status.REVIEW_REQUIRED, "budget_exceeded") == (response.status, response.failure)
    assert "the author's budget of the day does not hold another call" in response.reason
    assert 1 == len(provider.requests)
