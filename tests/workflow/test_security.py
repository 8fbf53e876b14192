"""An issue with a word of the security list ends in a security review, whatever the model says."""

from __future__ import annotations

import logging

import pytest

from tests.workflow.decisions import a_request, as_object, final, label, lookup
from tests.workflow.runs import outcome
from tests.workflow.world import World
from triage.contracts.response import Status
from triage.policy.security import SECURITY_REASON, SECURITY_ROUTE

CANARY = "ZEBRA-7781"
REPORT = a_request(title="Typo", body=f"Only a typo: an SQL injection in login, {CANARY}.")
REVIEW = Status.REVIEW_REQUIRED


@pytest.mark.parametrize("mode", ["shadow", "suggest", "approve"])
async def test_a_final_of_another_route_is_raised(
    world: World, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The model says bug; a person looks, nothing is proposed, and no log shows the text."""
    caplog.set_level(logging.INFO)
    run = await world.start(lookup(), final("owners-api"), request=REPORT, mode=mode)
    response = await run.response()
    assert (REVIEW, SECURITY_ROUTE, None, SECURITY_REASON) == (
        response.status,
        response.route,
        response.failure,
        response.reason,
    )
    assert ("owners-api",) == response.evidence_ids
    assert [] == await run.operation_states()
    assert CANARY not in caplog.text
    assert CANARY not in (await run.state()).model_dump_json()


async def test_what_ends_in_review_anyway_goes_to_security(world: World) -> None:
    """Whatever else was wrong, the route is the one that nothing lowers."""
    run = await world.start(label(), request=REPORT, mode="shadow")
    response = await run.response()
    assert (REVIEW, "policy_block") == outcome(response)
    assert SECURITY_ROUTE == response.route


async def test_a_failure_stays_one(world: World) -> None:
    """A model that gives no decision has said nothing of the issue."""
    run = await world.start({"kind": "nonsense"}, request=REPORT)
    assert (Status.FAILED, "model_invalid_output") == outcome(await run.response())


async def test_an_edit_takes_nothing_back(world: World) -> None:
    """Whoever removes the word after the run began is still reviewed."""
    script = [label(), lookup(), final("owners-api")]
    run = await world.start(*script, request=REPORT, mode="approve")
    await run.waiting()
    await run.signal("edit", {**as_object(REPORT), "body": "Only a typo."})
    response = await run.response()
    assert (REVIEW, SECURITY_ROUTE, ("owners-api",)) == (
        response.status,
        response.route,
        response.evidence_ids,
    )
