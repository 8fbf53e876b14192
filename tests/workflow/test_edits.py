"""The `edit` signal: the request changed, so what was decided on the old one does not count."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic import JsonValue
from temporalio import activity

from activities.decide import DecideActivities
from tests.workflow.decisions import (
    ISSUE,
    OPERATION,
    TIMEOUT,
    a_request,
    final,
    hand_over,
    label,
    lookup,
)
from tests.workflow.gate import Gate
from tests.workflow.runs import Run, envelope, outcome, refusal_of
from tests.workflow.world import World, altered_world
from triage.contracts.names import ACTIVITY_DECIDE
from triage.contracts.payloads import DecideRequest, DecideResult
from triage.contracts.response import Status
from triage.trackers.base import LabelsAdded, TrackerRefused
from triage.trackers.local import LocalTracker

EDITED = a_request(title="The API returns 503", body="Only since the last deployment.")
WRITE = [label(), final("mutation-receipt", labels=("bug",))]


async def test_an_edit_withdraws_what_is_pending(world: World) -> None:
    """A pending operation is withdrawn, the version grows by one and the loop begins again."""
    run = await world.start(*WRITE, mode="approve")
    old = await run.waiting()
    await run.signal("edit", EDITED)
    state = await run.reaches(lambda state: state.pending is None)
    response = await run.response()
    # The second step finds no receipt to cite.
    assert (Status.FAILED, "final_output_invalid", 2) == (*outcome(response), response.steps)
    assert [(OPERATION, 3, "withdrawn")] == await run.operation_states()
    assert ([], []) == (await world.written(run), await run.mutations())
    # Pending at 3, validated at 4, deciding at 5, failed at 6.
    assert (3, 6) == (old.version, (await run.state()).version)
    assert state.version > old.version


async def test_an_approval_of_the_withdrawn_version_is_stale(world: World) -> None:
    """What is proposed after an edit has a version of its own; the old approval is refused."""
    run = await world.start(label(), *WRITE, mode="approve")
    old = await run.waiting()
    await run.signal("edit", EDITED)
    new = await run.waiting_at(6)
    stale = {**envelope(old), "verdict": "approve"}
    assert "stale_version" == await refusal_of(run.update(stale))
    await run.signal("approve", envelope(old))
    await run.reaches(lambda state: state.refusals_total == 1)
    assert ["stale_version"] == await run.refusal_codes()
    assert [] == await world.written(run)
    assert (await run.update({**envelope(new), "verdict": "approve"})).accepted
    assert Status.COMPLETED is (await run.response()).status
    assert [(OPERATION, 3, "withdrawn"), (OPERATION, 6, "applied")] == await run.operation_states()


async def test_a_withdrawn_operation_id_may_name_another_write(world: World) -> None:
    """An operation that was never sent does not bind its id: after an edit it may differ."""
    script = [label("bug"), label("component:api"), final("mutation-receipt", labels=())]
    run = await world.start(*script, mode="approve")
    await run.waiting()
    await run.signal("edit", EDITED)
    await run.waiting_at(6)
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status
    assert ["component:api"] == await world.written(run)


async def test_the_next_decision_sees_the_edited_text(world: World) -> None:
    """The model is asked about the request as it is now."""
    run = await world.start(model="rules", mode="approve")
    assert "bug" in str((await run.waiting()).arguments["labels"])
    wish = a_request(title="Feature request: add dark mode", body="Please add support for it.")
    await run.signal("edit", wish)
    # Its third step is the rules model's last, so it hands over what it has.
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, None, "feature") == (*outcome(response), response.route)


async def test_steps_and_retries_carry_over(world: World) -> None:
    """An edit gives back neither steps nor retries."""
    script = [TIMEOUT, label(), TIMEOUT, lookup()]
    run = await world.start(*script, mode="approve")
    await run.waiting()
    await run.signal("edit", EDITED)
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, "model_timeout") == outcome(response)
    assert (1, 3) == (response.retries, response.steps)


async def test_evidence_of_before_the_edit_can_still_be_cited(world: World) -> None:
    """What a tool returned in this run stays evidence of this run."""
    script = [lookup(), label(), final("owners-api", labels=())]
    run = await world.start(*script, mode="approve")
    await run.waiting()
    await run.signal("edit", EDITED)
    response = await run.response()
    assert (Status.COMPLETED, ("owners-api",)) == (response.status, response.evidence_ids)


async def test_what_was_written_before_an_edit_is_not_proposed_again(world: World) -> None:
    """The run remembers over an edit which labels it applied, and under which operation."""
    other = label("bug", operation_id="op-106")
    script = [label("bug"), other, label("bug"), final("mutation-receipt", labels=("bug",))]
    run = await world.start(*script, mode="approve", max_steps=4)
    await run.review("approve")
    await run.waiting_at(6)
    await run.signal("edit", EDITED)
    await run.waiting_at(9)
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status
    assert [
        (OPERATION, True, True, "approved"),
        (OPERATION, False, True, "idempotent_replay"),
    ] == await run.mutation_facts()
    assert ["bug"] == await world.written(run)


async def test_an_edit_after_a_person_s_correction_puts_nothing_back(world: World) -> None:
    """What somebody took off meanwhile is not asked about again, under whatever operation."""
    script = [label("bug", operation_id=name) for name in (OPERATION, "op-106", "op-107")]
    run = await world.start(*script, mode="approve")
    await run.review("approve")
    await run.waiting_at(6)
    await world.tracker.remove_label(run.id, ISSUE, "bug", by="ann")
    await run.signal("edit", EDITED)
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, "policy_block") == outcome(response)
    states = [state for _, _, state in await run.operation_states()]
    assert ["applied", "withdrawn", "blocked"] == states
    assert ["added", "removed"] == [what for _, what, _ in await world.label_events(run)]


REFUSED: list[JsonValue] = [
    a_request(request_id="ISSUE-2"),
    {**EDITED, "labels": ["bug"]},
    a_request(title=" "),
    a_request(changed_paths="backend/api.py"),
    {"title": "Only a title"},
    [EDITED],
    "edited",
    None,
]


async def test_an_edit_that_is_not_of_this_request_is_refused(world: World) -> None:
    """A request of another id, or one that is none, is kept as malformed; nothing moves."""
    run = await world.start(*WRITE, mode="approve")
    await run.waiting()
    for value in REFUSED:
        await run.signal("edit", value)
    await run.signal("edit")
    await run.signal("edit", EDITED, EDITED)
    state = await run.reaches(lambda state: state.refusals_total == len(REFUSED) + 2)
    assert {"malformed"} == set(await run.refusal_codes())
    assert state.pending is not None
    assert 3 == state.version
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status


async def test_an_edit_that_arrives_before_the_run_is_taken(world: World) -> None:
    """An edit that overtakes the first task is not lost: the run triages the edited text."""
    wish = a_request(title="Feature request: add dark mode", body="Please add support for it.")
    run = await world.start(model="rules", start_signal=("edit", wish))
    response = await run.response()
    assert "feature" == response.route
    assert [] == await run.refusal_codes()


async def test_an_early_edit_of_another_request_is_refused(world: World) -> None:
    """An edit that overtakes the first task is held to the run's request id like any other."""
    other = a_request(request_id="ISSUE-2")
    run = await world.start(lookup(), final("owners-api"), start_signal=("edit", other))
    assert Status.COMPLETED is (await run.response()).status
    assert ["malformed"] == await run.refusal_codes()
    assert ISSUE == (await run.response()).request_id


@dataclass(frozen=True)
class Held:
    """A run one of whose decisions is held at a gate."""

    run: Run
    gate: Gate


@asynccontextmanager
async def held_at(
    world: World, step: int, *script: JsonValue, approvals: JsonValue = None
) -> AsyncIterator[Held]:
    """Run `script` in the approve mode, and hold the model when it is asked for this step."""
    gate = Gate()
    ask = DecideActivities(world.services).decide

    @activity.defn(name=ACTIVITY_DECIDE)
    async def held(request: DecideRequest) -> DecideResult:
        if request.step == step:
            await gate.hold()
        return await ask(request)

    async with altered_world(world, decide=held) as opened:
        yield Held(await opened.start(*script, mode="approve", approvals=approvals or {}), gate)


@pytest.fixture
async def deciding(world: World) -> AsyncIterator[Held]:
    """A run that is being decided on: its first answer is a hand-over, its second a read."""
    async with held_at(world, 1, hand_over(), lookup(), final("owners-api", labels=())) as held:
        await held.gate.entered()
        yield held


async def test_between_two_waits_nothing_is_pending(world: World) -> None:
    """After an edit, and before the next proposal, an approval of what was withdrawn is refused."""
    async with held_at(world, 2, label(), *WRITE) as held:
        old = envelope(await held.run.waiting())
        await held.run.signal("edit", EDITED)
        await held.gate.entered()
        assert await held.run.pending() is None
        assert "not_pending" == await refusal_of(held.run.update({**old, "verdict": "approve"}))
        await held.run.signal("approve", old)
        held.gate.open()
        await held.run.waiting_at(6)
        assert ["not_pending"] == await held.run.refusal_codes()
        await held.run.review("approve")
        assert Status.COMPLETED is (await held.run.response()).status


async def test_an_edit_while_the_model_is_asked_discards_the_answer(deciding: Held) -> None:
    """An answer to the old text is dropped: it cost a step, and the next one decides."""
    await deciding.run.signal("edit", EDITED)
    deciding.gate.open()
    response = await deciding.run.response()
    assert (Status.COMPLETED, None, 3) == (*outcome(response), response.steps)
    state = await deciding.run.state()
    assert ["call_tool", "final"] == [decision.kind for decision in state.decisions]
    # Validated, deciding, validated again, deciding, pending, complete, deciding, completed.
    assert 8 == state.version


async def test_of_several_edits_the_last_one_counts(deciding: Held) -> None:
    """Edits that arrive together are one step back, to the newest text."""
    for title in ("first", "second", "third"):
        await deciding.run.signal("edit", a_request(title=title))
    deciding.gate.open()
    assert Status.COMPLETED is (await deciding.run.response()).status
    assert 8 == (await deciding.run.state()).version


class HeldTracker(LocalTracker):
    """A tracker whose writes wait at a gate."""

    gate: Gate

    async def add_labels(self, *args: Any, **names: Any) -> LabelsAdded:  # noqa: ANN401 - passed on
        """Wait, then write."""
        await self.gate.hold()
        return await super().add_labels(*args, **names)


async def test_a_dispatched_write_is_settled_before_an_edit_counts(world: World) -> None:
    """An edit during a write waits for its receipt; the labels stay and the run begins again."""
    tracker = HeldTracker(world.tracker._store)
    tracker.gate = Gate()
    services = replace(world.services, trackers={"local": tracker})
    async with altered_world(world, services=services) as opened:
        run = await opened.start(*WRITE, mode="approve")
        await run.review("approve")
        await tracker.gate.entered()
        await run.signal("edit", EDITED)
        tracker.gate.open()
        response = await run.response()
        assert (Status.COMPLETED, ("mutation-receipt",)) == (
            response.status,
            response.evidence_ids,
        )
        assert [(OPERATION, 3, "applied")] == await run.operation_states()
        assert ["bug"] == await opened.written(run)
        # Pending at 3, complete at 4, validated at 5, deciding at 6, completed at 7.
        assert 7 == (await run.state()).version


class UnwillingTracker(HeldTracker):
    """A tracker whose first write waits at a gate and is then refused."""

    refusals = 1

    async def add_labels(self, *args: Any, **names: Any) -> LabelsAdded:  # noqa: ANN401 - passed on
        """Refuse once, then write."""
        if self.refusals:
            await self.gate.hold()
            self.refusals -= 1
            raise TrackerRefused("issue_locked", "no")
        return await LocalTracker.add_labels(self, *args, **names)


async def test_an_edit_during_a_write_that_fails_is_not_lost(world: World) -> None:
    """The failed write is settled, and the run begins again with the edited text."""
    tracker = UnwillingTracker(world.tracker._store)
    tracker.gate = Gate()
    services = replace(world.services, trackers={"local": tracker})
    async with altered_world(world, services=services) as opened:
        run = await opened.start(lookup(), label(), hand_over("owners-api"), mode="approve")
        await run.review("approve")
        await tracker.gate.entered()
        await run.signal("edit", EDITED)
        tracker.gate.open()
        response = await run.response()
        assert (Status.REVIEW_REQUIRED, None) == outcome(response)
        assert ("owners-api",) == response.evidence_ids
        assert [(OPERATION, 6, "failed")] == await run.operation_states()
        assert [] == await opened.written(run)
        # Pending at 6, validated again at 7, deciding at 8, over at 9.
        assert 9 == (await run.state()).version
