"""Whole runs whose tracker is slow, silent or gone: what the run says is what really happened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic import JsonValue

from activities.reads import READ_HANDLERS, RawRead, lookup_component_owner
from tests.activities.scripted_tracker import Add, ScriptedTracker
from tests.workflow.decisions import API_PATH, OPERATION, final, label, lookup
from tests.workflow.runs import Run, outcome
from tests.workflow.world import World, altered_world
from triage.contracts.response import Status
from triage.policy.rules import Rules
from triage.storage.ledger import Ledger

FINAL = final("mutation-receipt", labels=("bug",))
AT_START: JsonValue = {OPERATION: 6}
VANISH = "a path during whose lookup the issue vanishes"
SCRIPT: list[JsonValue] = [lookup(), label(), FINAL]


@dataclass
class FarEnd:
    """A worker whose tracker does what a test says, with a ledger that waits for moments only."""

    world: World
    tracker: ScriptedTracker

    async def run(self, *script: JsonValue, **options: Any) -> Run:  # noqa: ANN401 - any options
        """Run a script whose write is approved from the start."""
        context = {"tracker": "scripted"}
        approvals = options.pop("approvals", AT_START)
        return await self.world.start(*script, context=context, approvals=approvals, **options)


@pytest.fixture
async def far_end(world: World) -> AsyncIterator[FarEnd]:
    """A far end of one issue, and a worker that writes to it."""
    tracker = ScriptedTracker()

    async def look_up(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
        if arguments["path"] == VANISH:
            tracker.exists = False
        return await lookup_component_owner({"path": API_PATH}, rules)

    handlers = {**READ_HANDLERS, "lookup_component_owner": look_up}
    services = replace(
        world.services,
        trackers={**world.services.trackers, "scripted": tracker},
        ledger=Ledger(
            world.services.evidence._store,
            lease_seconds=60,
            quiet_period_seconds=0.2,
            max_redispatch=1,
        ),
    )
    async with altered_world(world, services=services, handlers=handlers) as opened:
        yield FarEnd(opened, tracker)


@pytest.mark.parametrize("fault", [Add.CUT_AFTER, Add.ERROR_AFTER, Add.CUT_BEFORE, Add.NOT_NOW])
async def test_a_write_whose_answer_was_lost_is_settled_by_reading(
    far_end: FarEnd, fault: Add
) -> None:
    """Whether the lost write had happened or not, the run completes with exactly one commit."""
    if fault is Add.NOT_NOW:
        far_end.tracker.pause_seconds = 0.1
    far_end.tracker.will(fault)
    run = await far_end.run(*SCRIPT)
    response = await run.response()
    assert (Status.COMPLETED, ("mutation-receipt",)) == (response.status, response.evidence_ids)
    assert [("bug",)] == [commit.labels for commit in far_end.tracker.commits]
    assert [(OPERATION, True, True, "approved")] == await run.mutation_facts()


async def test_a_write_that_nobody_can_settle_goes_to_a_person(far_end: FarEnd) -> None:
    """Unknown is neither done nor failed: the run ends in review, with its evidence kept."""
    far_end.tracker.will(*[Add.CUT_BEFORE] * 9)
    run = await far_end.run(*SCRIPT)
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, "tool_timeout") == outcome(response)
    assert ("owners-api",) == response.evidence_ids
    assert [(OPERATION, 6, "unknown")] == await run.operation_states()
    assert [] == await run.mutations()
    [operation] = await far_end.world.services.ledger.list(workflow_id=run.id)
    assert ("attention", "operations") == (operation.state, operation.attention_owner)


async def test_a_proposal_that_nobody_can_settle_stays_in_the_response(far_end: FarEnd) -> None:
    """An unknown write of the orchestrator's keeps route, labels and owner for the person."""
    far_end.tracker.will(*[Add.CUT_BEFORE] * 9)
    script = [lookup(), final("owners-api")]
    run = await far_end.run(*script, mode="approve", approvals={"op-6": 6})
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, "tool_timeout") == outcome(response)
    assert ("bug", ("bug", "component:api"), "backend-team", ("owners-api",)) == (
        response.route,
        response.labels,
        response.owner,
        response.evidence_ids,
    )


async def test_a_refused_write_after_a_read_keeps_the_evidence(far_end: FarEnd) -> None:
    """A definite no of the tracker is a tool_error; what was read before is kept for a person."""
    far_end.tracker.will(Add.LOCKED)
    response = await (await far_end.run(*SCRIPT)).response()
    assert (Status.REVIEW_REQUIRED, "tool_error") == outcome(response)
    assert ("owners-api",) == response.evidence_ids


async def test_a_refused_write_without_evidence_fails(far_end: FarEnd) -> None:
    """With nothing to keep, a definite no of the tracker fails the run."""
    far_end.tracker.will(Add.LOCKED)
    run = await far_end.run(label(), FINAL, approvals={OPERATION: 3})
    assert (Status.FAILED, "tool_error") == outcome(await run.response())
    assert [(OPERATION, 3, "failed")] == await run.operation_states()


async def test_an_issue_that_vanishes_while_a_person_decides_is_not_written(
    far_end: FarEnd,
) -> None:
    """An approval of a write to an issue that is gone ends in tool_error, and nothing was sent."""
    run = await far_end.run(*SCRIPT, mode="approve", approvals={})
    await run.waiting()
    far_end.tracker.exists = False
    await run.review("approve")
    assert (Status.REVIEW_REQUIRED, "tool_error") == outcome(await run.response())
    assert 0 == far_end.tracker.calls


async def test_an_issue_that_vanished_before_is_not_shown(far_end: FarEnd) -> None:
    """A proposal on an issue that is gone ends in tool_error, and nobody is asked."""
    run = await far_end.run(lookup(VANISH), label(), FINAL, mode="approve", approvals={})
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, "tool_error") == outcome(response)
    assert ("owners-api",) == response.evidence_ids
    assert [] == await run.mutations()


async def test_an_issue_that_does_not_exist_is_invalid_input(far_end: FarEnd) -> None:
    """A tracker that only looks, and finds no issue, ends the run before its first step."""
    far_end.tracker.exists = False
    run = await far_end.run(*SCRIPT)
    response = await run.response()
    assert (Status.FAILED, "invalid_input", 0) == (*outcome(response), response.steps)
