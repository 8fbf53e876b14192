"""Each failure class is reached by a run: a new one needs a run here that reaches it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from pydantic import JsonValue

from activities.reads import READ_HANDLERS, RawRead
from tests.workflow.decisions import TIMEOUT, a_request, call, final, label, lookup
from tests.workflow.runs import outcome
from tests.workflow.world import World, altered_world
from triage.contracts.failures import FAILURES, FailureClass, FailureGroup
from triage.contracts.response import Status
from triage.policy.rules import Rules

F = FailureClass
REVIEW, FAILED = Status.REVIEW_REQUIRED, Status.FAILED
Case = tuple[list[JsonValue], dict[str, Any], Status]

TWICE = [label("bug"), label("component:api")]
CASES: dict[FailureClass, Case] = {
    F.INVALID_INPUT: ([], {"request": a_request(title="")}, FAILED),
    F.MODEL_TIMEOUT: ([TIMEOUT], {"max_model_retries": 0}, REVIEW),
    F.MODEL_INVALID_OUTPUT: ([{"kind": "merge"}], {}, FAILED),
    F.UNKNOWN_TOOL: ([call("delete_repository", {})], {}, FAILED),
    F.INVALID_TOOL_ARGUMENTS: ([call("lookup_component_owner", {})], {}, FAILED),
    F.TOOL_TIMEOUT: ([lookup("slow")], {}, FAILED),
    F.TOOL_ERROR: ([lookup("broken")], {}, FAILED),
    F.POLICY_BLOCK: ([label()], {"mode": "shadow"}, REVIEW),
    F.APPROVAL_REQUIRED: ([label()], {}, REVIEW),
    F.STATE_CONFLICT: (TWICE, {"mode": "approve", "approvals": {"op-105": 3}}, REVIEW),
    F.MAX_STEPS_EXCEEDED: ([lookup()] * 2, {"max_steps": 1}, FAILED),
    F.FINAL_OUTPUT_INVALID: ([final("owners-api")], {}, FAILED),
    F.BUDGET_EXCEEDED: ([lookup()], {"budget": {"tokens": 0}}, REVIEW),
}


async def _behave(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
    """Fail as the path says."""
    if arguments["path"] == "slow":
        raise TimeoutError
    if arguments["path"] == "broken":
        raise RuntimeError
    return RawRead({"owner": "a", "evidence_id": "owners-api"}, source="tests", locator="tests@1")


@pytest.fixture(scope="module")
async def partly_broken(world: World) -> AsyncIterator[World]:
    """A worker on which some lookups fail."""
    handlers = {**READ_HANDLERS, "lookup_component_owner": _behave}
    async with altered_world(world, handlers=handlers) as opened:
        yield opened


@pytest.mark.parametrize("failure", FailureClass)
async def test_every_failure_class_is_reached_by_a_run(
    partly_broken: World, failure: FailureClass
) -> None:
    """A run ends in each class, with the status that the class stands for."""
    script, options, status = CASES[failure]
    response = await partly_broken.play(*script, **options)
    assert (status, failure) == outcome(response)
    assert response.reason


def test_every_failure_class_has_a_group_an_owner_and_a_next_step() -> None:
    """Whoever reads a failed run is told who fixes it and what to do first."""
    assert set(FailureClass) == set(FAILURES)
    assert set(FailureGroup) == {info.group for info in FAILURES.values()}
    assert all(info.owner and info.next_step for info in FAILURES.values())
