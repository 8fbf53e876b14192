"""propose_on_final: the orchestrator asks a person for the labels of a grounded final."""

from __future__ import annotations

import pytest
from pydantic import JsonValue
from sqlalchemy import delete

from tests.workflow.decisions import ISSUE, OPERATION, final, hand_over, label, lookup
from tests.workflow.runs import outcome
from tests.workflow.test_edits import EDITED, held_at
from tests.workflow.world import World
from triage.contracts.response import Status
from triage.storage.schema import tracker_labels
from triage.trackers.local_rows import label_key

PROPOSAL = "op-6"
TOOLS = ("lookup_component_owner", "apply_labels")
FINAL = final("owners-api")


async def test_an_approved_proposal_is_written_and_the_run_completes(world: World) -> None:
    """The final's labels are written after approval; it costs no step and joins the tools."""
    run = await world.start(lookup(), FINAL, mode="approve")
    pending = await run.waiting()
    assert (PROPOSAL, 6, "orchestrator") == (
        pending.operation_id,
        pending.version,
        pending.proposed_by,
    )
    assert {"issue_id": ISSUE, "labels": ["bug", "component:api"]} == pending.arguments
    await run.review("approve")
    response = await run.response()
    assert (Status.COMPLETED, None, 2, TOOLS) == (
        *outcome(response),
        response.steps,
        response.tool_sequence,
    )
    assert ("bug", ("bug", "component:api"), "backend-team", ("owners-api",)) == (
        response.route,
        response.labels,
        response.owner,
        response.evidence_ids,
    )
    assert ["bug", "component:api"] == await world.written(run)
    assert [(PROPOSAL, True, True, "approved")] == await run.mutation_facts()
    # Pending at 6, complete, deciding, completed.
    assert 9 == (await run.state()).version


@pytest.mark.parametrize("verdict", ["reject"])
async def test_a_rejected_proposal_stays_in_the_response(world: World, verdict: str) -> None:
    """A rejection ends in review with the proposed route, labels, owner and evidence."""
    run = await world.start(lookup(), FINAL, mode="approve")
    await run.review(verdict)
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(response)
    assert ("bug", ("bug", "component:api"), "backend-team", ("owners-api",)) == (
        response.route,
        response.labels,
        response.owner,
        response.evidence_ids,
    )
    assert [] == await world.written(run)
    assert 7 == (await run.state()).version


async def test_an_expired_proposal_stays_in_the_response(world: World) -> None:
    """A proposal that nobody decides on in time ends as a rejected one does."""
    run = await world.start(lookup(), FINAL, mode="approve", approval_window_seconds=1)
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(response)
    assert (("bug", "component:api"), "backend-team") == (response.labels, response.owner)
    assert [(PROPOSAL, 6, "expired")] == await run.operation_states()


async def test_a_final_without_labels_is_not_proposed(world: World) -> None:
    """With nothing to write the run completes at once."""
    run = await world.start(lookup(), final("owners-api", labels=()), mode="approve")
    assert Status.COMPLETED is (await run.response()).status
    assert [] == await run.operation_states()


async def test_a_review_is_not_proposed(world: World) -> None:
    """Only a final is proposed: what the model hands over goes to a person as it is."""
    run = await world.start(lookup(), hand_over("owners-api"), mode="approve")
    assert (Status.REVIEW_REQUIRED, None) == outcome(await run.response())
    assert [] == await run.operation_states()


@pytest.mark.parametrize("labels", [("bug",), ("bug", "bug")])
async def test_labels_that_this_run_applied_are_not_proposed_again(
    world: World, labels: tuple[str, ...]
) -> None:
    """A final whose labels were all written in this run completes without another question."""
    script = [label("bug", "component:api"), final("mutation-receipt", labels=labels)]
    run = await world.start(*script, mode="approve", approvals={OPERATION: 3})
    response = await run.response()
    assert (Status.COMPLETED, ("apply_labels",)) == (response.status, response.tool_sequence)


async def test_a_label_that_is_still_missing_is_proposed(world: World) -> None:
    """A final with one label more than the run wrote is proposed whole."""
    script = [label("bug"), final("mutation-receipt")]
    run = await world.start(*script, mode="approve", approvals={OPERATION: 3})
    pending = await run.waiting()
    assert ("op-6", ("bug",), ("bug", "component:api")) == (
        pending.operation_id,
        pending.labels_before,
        pending.labels_after,
    )
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status
    assert ["bug", "component:api"] == await world.written(run)


async def test_a_proposal_can_be_approved_from_the_start(world: World) -> None:
    """The orchestrator's operation id is the version, so a caller can name it beforehand."""
    run = await world.start(lookup(), FINAL, mode="approve", approvals={PROPOSAL: 6})
    assert Status.COMPLETED is (await run.response()).status
    assert ["bug", "component:api"] == await world.written(run)


@pytest.mark.parametrize("operation", [PROPOSAL, "op-8"], ids=["as it was", "edited"])
async def test_what_was_approved_from_the_start_is_about_the_labels_of_then(
    world: World, operation: str
) -> None:
    """A label that is deleted and made again after the start, or after an edit, is another one."""
    # What was asked before an edit is thrown away.
    script = [lookup(), FINAL] if operation == PROPOSAL else [hand_over(), lookup(), FINAL]
    version = int(operation.removeprefix("op-"))
    given: JsonValue = {operation: version}
    async with held_at(world, 1, *script, approvals=given) as held:
        await held.gate.entered()
        async with world.services.store.write() as connection:
            mine = tracker_labels.c.label_key == label_key(held.run.id, "bug")
            await connection.execute(delete(tracker_labels).where(mine))
        await world.tracker.seed_labels(held.run.id, ["bug"])
        if operation != PROPOSAL:
            await held.run.signal("edit", EDITED)
        held.gate.open()
        response = await held.run.response()
        assert (Status.REVIEW_REQUIRED, "state_conflict") == outcome(response)
        assert [(operation, version, "conflict")] == await held.run.operation_states()
    assert [] == await world.written(held.run)


async def test_without_the_effect_nothing_is_proposed(world: World) -> None:
    """A run that may not write answers without asking."""
    run = await world.start(lookup(), FINAL, mode="approve", permitted_effects=[])
    assert Status.COMPLETED is (await run.response()).status
    assert [] == await run.operation_states()


async def test_an_ungrounded_final_is_never_proposed(world: World) -> None:
    """Grounding comes first: a final without evidence fails and nobody is asked."""
    run = await world.start(lookup(), final(), mode="approve")
    assert (Status.FAILED, "final_output_invalid") == outcome(await run.response())
    assert [] == await run.operation_states()


async def test_a_proposal_at_the_last_step_is_still_made(world: World) -> None:
    """The proposal costs no step, so the last permitted one may end in it."""
    run = await world.start(lookup(), FINAL, mode="approve", max_steps=2)
    await run.review("approve")
    response = await run.response()
    assert (Status.COMPLETED, 2) == (response.status, response.steps)


async def test_with_a_window_of_zero_a_proposal_ends_at_once(world: World) -> None:
    """In the approve mode without a window nobody can approve: the run ends in review."""
    run = await world.start(lookup(), FINAL, mode="approve", approval_window_seconds=0)
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(response)
    assert ("bug", "component:api") == response.labels
    assert [(PROPOSAL, 6, "approval_required")] == await run.operation_states()
