"""The three modes, which are three options, and approvals that a caller starts a run with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue

from tests.workflow.decisions import OPERATION, final, label, lookup, policy
from tests.workflow.runs import outcome
from tests.workflow.world import World, altered_world
from triage.contracts.response import Status

REVIEW = Status.REVIEW_REQUIRED
APPROVE = {OPERATION: 3}


SHADOW: list[dict[str, Any]] = [{"mode": "shadow"}, {"permitted_effects": []}]
SUGGEST: list[dict[str, Any]] = [{}, {"mode": "suggest"}, {"approval_window_seconds": 0}]


@pytest.mark.parametrize("options", SHADOW)
async def test_shadow_blocks_every_write(world: World, options: dict[str, Any]) -> None:
    """Where no effect is permitted a write is blocked by policy, even with an approval for it."""
    run = await world.start(label(), approvals={OPERATION: 3}, **options)
    assert (REVIEW, "policy_block") == outcome(await run.response())
    assert ([], [], []) == (
        await world.written(run),
        await run.mutations(),
        await run.operation_states(),
    )


async def test_shadow_still_answers(world: World) -> None:
    """Shadow mode completes a grounded final without proposing anything."""
    run = await world.start(lookup(), final("owners-api"), mode="shadow")
    response = await run.response()
    assert (Status.COMPLETED, ("lookup_component_owner",)) == (
        response.status,
        response.tool_sequence,
    )
    assert [] == await world.written(run)


@pytest.mark.parametrize("options", SUGGEST)
async def test_suggest_asks_for_approval_and_ends_at_once(
    world: World, options: dict[str, Any]
) -> None:
    """In the default mode an unapproved write ends the run in review, recorded and not sent."""
    run = await world.start(label(), final("mutation-receipt"), **options)
    assert (REVIEW, "approval_required") == outcome(await run.response())
    assert [(OPERATION, False, False, "approval_required")] == await run.mutation_facts()
    assert [(OPERATION, 3, "approval_required")] == await run.operation_states()
    assert [] == await world.written(run)
    assert 4 == (await run.state()).version


async def test_suggest_does_not_propose_a_final(world: World) -> None:
    """Outside the approve mode a final's labels are answered, not written."""
    run = await world.start(lookup(), final("owners-api"))
    assert Status.COMPLETED is (await run.response()).status
    assert ([], []) == (await world.written(run), await run.mutations())


@pytest.mark.parametrize("operation_id", [None, ""])
@pytest.mark.parametrize("mode", ["suggest", "approve"])
async def test_a_write_without_an_operation_id_can_not_be_approved(
    world: World, operation_id: str | None, mode: str
) -> None:
    """It ends approval_required at once, in every mode, whatever the starting approvals say."""
    run = await world.start(label(operation_id=operation_id), mode=mode, approvals={"": 3})
    assert (REVIEW, "approval_required") == outcome(await run.response())
    assert [(operation_id, False, False, "approval_required")] == await run.mutation_facts()
    assert [(None, 3, "approval_required")] == await run.operation_states()


async def test_an_explicit_window_makes_any_mode_wait(world: World) -> None:
    """An option wins over its mode: suggest with a window waits for a person."""
    run = await world.start(label(), final("mutation-receipt"), approval_window_seconds=600)
    assert 3 == (await run.waiting()).version
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status


@pytest.mark.parametrize("mode", ["suggest", "approve"])
async def test_a_matching_starting_approval_lets_the_write_through(world: World, mode: str) -> None:
    """A run that was started with this operation at this version writes without waiting."""
    script = [label(), final("mutation-receipt", labels=("bug",))]
    run = await world.start(*script, mode=mode, approvals=APPROVE)
    response = await run.response()
    assert (Status.COMPLETED, ("mutation-receipt",)) == (response.status, response.evidence_ids)
    assert [(OPERATION, True, True, "approved")] == await run.mutation_facts()
    assert [(OPERATION, 3, "applied")] == await run.operation_states()
    assert ["bug"] == await world.written(run)


STALE: list[tuple[dict[str, JsonValue], list[str]]] = [
    ({OPERATION: 2}, ["stale_version"]),
    ({OPERATION: 6}, ["stale_version"]),
    ({"another": 3}, []),
    ({}, []),
]


@pytest.mark.parametrize(("approvals", "refusals"), STALE, ids=range(len(STALE)))
async def test_a_starting_approval_for_something_else_is_kept_as_a_refusal(
    world: World, approvals: dict[str, JsonValue], refusals: list[str]
) -> None:
    """An approval of another version is kept as refused; one of another operation says nothing."""
    run = await world.start(label(), final("mutation-receipt"), approvals=approvals)
    assert (REVIEW, "approval_required") == outcome(await run.response())
    state = await run.state()
    assert refusals == [refusal.code for refusal in state.refusals]
    assert len(refusals) == state.refusals_total
    assert [] == await world.written(run)


async def test_a_starting_approval_holds_for_the_version_of_its_own_call(world: World) -> None:
    """After one read the write is pending at 6, and an approval for 6 is the one that counts."""
    script = [policy(), label(), final("mutation-receipt", labels=("bug",))]
    run = await world.start(*script, approvals={OPERATION: 6})
    assert Status.COMPLETED is (await run.response()).status
    assert [(OPERATION, 6, "applied")] == await run.operation_states()


async def test_a_stale_starting_approval_does_not_spoil_the_wait(world: World) -> None:
    """In the approve mode the run waits all the same, and a person's approval counts."""
    script = [label(), final("mutation-receipt", labels=("bug",))]
    run = await world.start(*script, mode="approve", approvals={OPERATION: 9})
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status
    assert ["stale_version"] == [refusal.code for refusal in (await run.state()).refusals]


@pytest.fixture(scope="module")
async def untrusting(world: World) -> AsyncIterator[World]:
    """A worker on which unsigned approvals do not count."""
    async with altered_world(world, services=replace(world.services, local_trust=False)) as opened:
        yield opened


async def test_without_local_trust_no_unsigned_approval_counts(untrusting: World) -> None:
    """A starting approval, a signal and an update are all refused as unauthorised."""
    script = [label(), final("mutation-receipt")]
    run = await untrusting.start(*script, mode="approve", approvals=APPROVE)
    pending = await run.waiting()
    value = {
        "operation_id": pending.operation_id,
        "version": pending.version,
        "approver": "maintainer",
    }
    await run.signal("approve", value)
    state = await run.reaches(lambda state: state.refusals_total == 2)
    assert [("unauthorised", "start"), ("unauthorised", "maintainer")] == [
        (refusal.code, refusal.approver) for refusal in state.refusals
    ]
    await run.handle.terminate()
    assert [] == await untrusting.written(run)


async def test_without_local_trust_suggest_ends_unapproved(untrusting: World) -> None:
    """A starting approval that does not count leaves the write unapproved."""
    run = await untrusting.start(label(), approvals=APPROVE)
    assert (REVIEW, "approval_required") == outcome(await run.response())
    assert ["unauthorised"] == [refusal.code for refusal in (await run.state()).refusals]
