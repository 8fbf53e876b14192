"""What the rules say of a repository, its approvers, its tools and its budget holds in a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from tests.fixed_rules import rules_with
from tests.workflow.decisions import OPERATION, final, label, lookup
from tests.workflow.runs import envelope, outcome, refusal_of
from tests.workflow.world import World, altered_world
from triage.contracts.options import BudgetLimits, Mode
from triage.contracts.response import Status

SCRIPT = [label(), final("mutation-receipt", labels=("bug",))]


@asynccontextmanager
async def _with_rules(world: World, **changes: object) -> AsyncIterator[World]:
    services = replace(world.services, rules=rules_with(**changes))
    async with altered_world(world, services=services) as opened:
        yield opened


async def test_only_those_whom_the_rules_name_may_decide(world: World) -> None:
    """Anybody else is refused, by signal and by update; logins are compared without case."""
    async with _with_rules(world, approvers=("@Ann", "bob")) as ruled:
        run = await ruled.start(*SCRIPT, mode="approve")
        pending = await run.waiting()
        other = envelope(pending, approver="maintainer")
        await run.signal("approve", other)
        assert "unauthorised" == await refusal_of(run.update({**other, "verdict": "approve"}))
        assert ["unauthorised"] == await run.refusal_codes()
        assert (await run.review("approve", approver="ANN")).accepted
        assert Status.COMPLETED is (await run.response()).status


async def test_a_start_cannot_approve_where_the_rules_name_people(world: World) -> None:
    """A bare version from the start names nobody, so it does not count."""
    async with _with_rules(world, approvers=("ann",)) as ruled:
        run = await ruled.start(*SCRIPT, approvals={OPERATION: 3})
        assert ("review_required", "approval_required") == outcome(await run.response())
        assert ["unauthorised"] == await run.refusal_codes()


async def test_a_repository_has_its_own_mode(world: World) -> None:
    """In a repository that the rules put into the shadow, nothing is written, approved or not."""
    async with _with_rules(world, repositories={"acme/quiet": Mode.SHADOW}) as ruled:
        quiet = {"context": {"repository": "acme/quiet"}, "approvals": {OPERATION: 3}}
        assert ("review_required", "policy_block") == outcome(await ruled.play(*SCRIPT, **quiet))
        assert Status.COMPLETED is (await ruled.play(*SCRIPT, approvals={OPERATION: 3})).status


async def test_a_tool_that_is_off_is_unknown(world: World) -> None:
    """A model that names a tool which the rules turned off has named no tool."""
    async with _with_rules(world, tools_off=("lookup_component_owner",)) as ruled:
        assert ("failed", "unknown_tool") == outcome(await ruled.play(lookup(), max_steps=3))


async def test_a_budget_of_the_rules_ends_a_run(world: World) -> None:
    """What the rules allow is spent after the first read, whatever the options allow."""
    async with _with_rules(world, budget=BudgetLimits(evidence_bytes=1)) as ruled:
        options = {"budget": {"evidence_bytes": 1_000_000}}
        response = await ruled.play(lookup(), final("owners-api"), **options)
        assert ("review_required", "budget_exceeded") == outcome(response)
        assert ("owners-api",) == response.evidence_ids
