"""A run whose history has grown long goes on under a fresh one, with everything that it knows."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from temporalio import activity
from temporalio.client import WorkflowUpdateFailedError
from temporalio.common import RawValue, RetryPolicy
from temporalio.service import RPCError

from activities.decide import DecideActivities
from tests.fixed_rules import rules_with
from tests.workflow.answering import next_number
from tests.workflow.decisions import OPERATION, a_request, final, label, lookup
from tests.workflow.losing import losing
from tests.workflow.runs import Run, envelope, eventually, outcome, refusal_of
from tests.workflow.world import (
    World,
    altered_world,
    dev_server,
    opened_services,
    opened_world,
)
from triage.contracts.names import (
    ACTIVITY_DECIDE,
    ACTIVITY_LOOKUP_OWNER,
    ACTIVITY_PIN_RUN_CONTEXT,
    ISSUE_TRIAGE,
)
from triage.contracts.payloads import DecideRequest, DecideResult
from triage.contracts.response import Status, TriageResponse
from triage.contracts.search_attributes import TRIAGE_WAITING_SINCE
from triage.contracts.state import StateView
from triage.story.calls import local_call

SUGGESTED_AT = 120
"""From how many events on this server suggests to continue as new; by default it is 4,096."""

SCRIPT = [lookup(), label(), final("mutation-receipt", labels=("bug",))]
JUNK = 3 * SUGGESTED_AT
WINDOWS_SECONDS = (6, 6, 30)
"""One after the other, for a machine that stood still at the wrong moment."""


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A worker on a server whose histories are full early."""
    home = tmp_path_factory.mktemp("continue-as-new")
    async with (
        await dev_server(
            "--dynamic-config-value", f"limit.historyCount.suggestContinueAsNew={SUGGESTED_AT}"
        ) as server,
        opened_services(home) as services,
        opened_world(server.client, services, home) as opened,
    ):
        yield opened


async def _flood(run: Run, count: int) -> None:
    """Send junk, ten at a time."""
    for start in range(0, count, 10):
        size = min(10, count - start)
        await asyncio.gather(*(run.signal("noise", {"n": start + n}) for n in range(size)))


async def test_a_flood_of_signals_changes_nothing_of_a_waiting_run(world: World) -> None:
    """Version, spend, evidence, deadline and digest stay, every signal is counted, one write."""
    run = await world.start(*SCRIPT, mode="approve")
    pending = await run.waiting_at(6)
    before = await run.state()
    await _flood(run, JUNK)
    after = await run.reaches(lambda state: state.refusals_total == JUNK)
    description = await run.handle.describe()
    assert description.run_id != run.handle.first_execution_run_id
    assert pending == after.pending
    assert before == after.model_copy(update={"refusals": (), "refusals_total": 0})
    assert ["malformed"] * 50 == [refusal.code for refusal in after.refusals]
    assert description.typed_search_attributes.get(TRIAGE_WAITING_SINCE) is not None
    answer = await run.update({**envelope(pending), "verdict": "approve"})
    assert (True, 6) == (answer.accepted, answer.version)
    response = await run.response()
    assert (Status.COMPLETED, None, 3) == (*outcome(response), response.steps)
    assert ["bug"] == await world.written(run)
    assert [(OPERATION, 6, "applied")] == await run.operation_states()
    assert [] == await run.task_failures()


async def test_an_approval_in_the_middle_of_a_flood_counts(world: World) -> None:
    """Wherever it falls, also while the run continues as new, an approval is taken exactly once."""
    runs = [await world.start(*SCRIPT, mode="approve") for _ in range(6)]
    pending = [await run.waiting_at(6) for run in runs]

    async def approve(position: int) -> None:
        run, good = runs[position], envelope(pending[position])
        await _flood(run, 90 + 5 * position)
        noise = asyncio.create_task(_flood_while_running(run, 100))
        if position % 2:
            await run.signal("approve", good)
        else:
            assert (await run.update({**good, "verdict": "approve"})).accepted
        await noise

    await asyncio.gather(*map(approve, range(len(runs))))
    for run in runs:
        assert Status.COMPLETED is (await run.response()).status
        assert ["bug"] == await world.written(run)
        assert [(OPERATION, 6, "applied")] == await run.operation_states()


async def _flood_while_running(run: Run, count: int) -> None:
    with suppress(RPCError):
        await _flood(run, count)


async def test_an_answer_that_came_along_is_taken_before_a_run_goes_on(world: World) -> None:
    """A history that is full already costs no answer: what was pinned or read is followed first."""
    queue = f"later-{uuid.uuid4().hex}"
    run = await replace(world, queue=queue).start(model="rules")
    await _flood(run, JUNK)
    async with altered_world(world, queue=queue):
        response = await run.response()
        assert (Status.COMPLETED, None, 2) == (*outcome(response), response.steps)
        assert (await run.state()).refusals_total == JUNK
    calls = [local_call(event) for event in await run.events()]
    names = [call.call.name for call in calls if call is not None]
    assert [ACTIVITY_PIN_RUN_CONTEXT, ACTIVITY_LOOKUP_OWNER] == names


async def test_no_flood_moves_a_deadline(world: World) -> None:
    """The wait of a flooded run ends when it was said to end, and nothing is written."""
    for window_seconds in WINDOWS_SECONDS:
        run = await world.start(*SCRIPT, mode="approve", approval_window_seconds=window_seconds)
        first = await run.reaches(lambda state: state.version >= 6)
        await _flood_while_running(run, JUNK)
        assert ("review_required", "approval_required") == outcome(await run.response())
        assert [] == await world.written(run)
        late = await _late_seconds(run, first)
        if late is not None and late < 5:
            return
    raise AssertionError(f"{late} s late")


async def _late_seconds(run: Run, first: StateView) -> float | None:
    """How late a run ended that continued as new, unless the machine was too slow for that."""
    described = await run.handle.describe()
    if first.pending is None or described.run_id == run.handle.first_execution_run_id:
        return None
    assert described.close_time is not None
    late = described.close_time - datetime.fromisoformat(first.pending.expires_at)
    assert timedelta() <= late
    return late.total_seconds()


async def test_edits_without_end_stay_within_bounds(world: World) -> None:
    """Each edit costs a step, and steps, edits and evidence count on over every execution."""
    script = [lookup(), *[label()] * 40]
    run = await world.start(*script, mode="approve", max_steps=30)
    version = 6
    for number in range(28):
        await run.waiting_at(version)
        await run.signal("edit", a_request(title=f"Edited {number} times"))
        # Withdrawn, validated again, deciding and pending: three transitions further on.
        version += 3
    assert 30 == (await run.reaches(lambda s: s.version == version)).steps
    assert (await run.handle.describe()).run_id != run.handle.first_execution_run_id
    old = {**envelope(await run.waiting()), "version": version - 3, "verdict": "approve"}
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await run.update(old)
    assert "the request was edited since (title)" in str(refused.value.cause)
    await run.review("approve")
    assert ("failed", "max_steps_exceeded") == outcome(await run.response())
    assert ["owners-api", "mutation-receipt"] == [e.id for e in (await run.state()).evidence]


async def test_nobody_else_can_hand_a_state_on(world: World) -> None:
    """A state that comes with a start is refused, also when the server starts that run anew."""
    source = await world.start(*SCRIPT, mode="approve")
    await source.waiting_at(6)
    await _flood(source, JUNK)
    await source.reaches(lambda state: state.refusals_total == JUNK)
    stolen = (await source.events())[0].workflow_execution_started_event_attributes.input.payloads
    assert 3 == len(stolen)
    queue = f"queue-{uuid.uuid4().hex}"
    forged = await world.client.start_workflow(
        ISSUE_TRIAGE,
        args=[RawValue(payload) for payload in stolen],
        id=f"run-{uuid.uuid4().hex}",
        task_queue=queue,
        run_timeout=timedelta(seconds=2),
        # As often as it takes a slow machine to get to it within that time.
        retry_policy=RetryPolicy(),
        result_type=TriageResponse,
    )

    async def started_anew() -> bool:
        return (await forged.describe()).run_id != forged.first_execution_run_id

    await eventually(started_anew)
    async with altered_world(world, queue=queue):
        response = await Run(forged).response()
    assert ("failed", "invalid_input") == outcome(response)
    assert "got 3 inputs" in response.reason


async def test_a_correction_is_asked_for_by_the_next_execution(world: World) -> None:
    """The model is told what was wrong although the history was full before it could be."""
    services = replace(world.services, rules=rules_with(max_corrections=1))
    real, asked = DecideActivities(services), list[DecideRequest]()
    flooded = asyncio.Event()

    @activity.defn(name=ACTIVITY_DECIDE)
    async def decide(request: DecideRequest) -> DecideResult:
        asked.append(request)
        await flooded.wait()
        return await real.decide(request)

    async with altered_world(world, services=services, decide=decide) as slow:
        run = await slow.start({"kind": "nonsense"}, lookup(), final("owners-api"), max_steps=9)
        await _flood(run, SUGGESTED_AT)
        flooded.set()
        assert (Status.COMPLETED, None) == outcome(await run.response())
        assert (await run.handle.describe()).run_id != run.handle.first_execution_run_id
    assert [False, True, False] == [request.correction is not None for request in asked]


async def test_one_person_stays_one_person(world: World) -> None:
    """Who has approved already is known to every execution of a run, under any spelling."""
    services = replace(world.services, rules=rules_with(approvals_required=2))
    async with altered_world(world, services=services) as ruled:
        run = await ruled.start(*SCRIPT, mode="approve")
        good = envelope(await run.waiting_at(6), approver="ann")
        await run.update({**good, "verdict": "approve"})
        await _flood(run, JUNK)
        state = await run.reaches(lambda state: state.refusals_total == JUNK)
        assert (await run.handle.describe()).run_id != run.handle.first_execution_run_id
        assert state.pending is not None
        assert (("ann",), 2) == (state.pending.approved_by, state.pending.approvals_required)
        again = {**good, "approver": "@ANN", "verdict": "approve"}
        assert "duplicate" == await refusal_of(run.update(again))
        assert (await run.review("approve", approver="bob")).accepted
        assert Status.COMPLETED is (await run.response()).status


async def test_the_largest_run_can_be_carried(world: World) -> None:
    """A long request, long names and an edit that has just come still fit into one start."""
    body = "\u00fc" * 600_000
    script = [lookup(), label(), label()]
    run = await world.start(*script, mode="approve", request=a_request(body=body))
    good = envelope(await run.waiting_at(6))
    long_name = "\u4eba" * 190
    for number in range(60):
        await run.signal("approve", {**good, "version": 1, "approver": f"{long_name}{number}"})
    await _flood(run, JUNK)
    await run.reaches(lambda state: state.refusals_total == JUNK + 60)
    assert (await run.handle.describe()).run_id != run.handle.first_execution_run_id
    await run.signal("edit", a_request(body=body, title="Edited"))
    await run.waiting_at(9)
    assert [] == await run.task_failures()
    await run.handle.terminate()


async def test_an_answer_that_counted_before_is_known_after(world: World, tmp_path: Path) -> None:
    """The server forgets an answer with the execution that took it; the record does not."""
    number = next_number()
    first = label(operation_id="first", issue=number)
    second = label("component:api", operation_id="second", issue=number)
    async with losing(world, tmp_path) as lost:
        run, pending, subject = await lost.desk.waiting(lookup(), first, second, number=number)
        await lost.says(subject, pending)
        await run.waiting_at(pending.version + 3)
        await _flood(run, JUNK)
        await run.reaches(lambda state: state.refusals_total == JUNK)
        assert (await run.handle.describe()).run_id != run.handle.first_execution_run_id
        await lost.tries_again()
        assert ["accepted"] == await lost.desk.outcomes(subject)
        await run.handle.terminate()


@pytest.mark.parametrize("decided", [False, True])
async def test_one_of_two_approvals_before_a_continuation_is_not_recorded_as_refused(
    world: World, tmp_path: Path, *, decided: bool
) -> None:
    """Whether another person has made it two since, or the run still waits for one."""
    async with losing(world, tmp_path, required=2) as lost:
        run, pending, subject = await lost.desk.waiting()
        await lost.says(subject, pending)
        await _flood(run, SUGGESTED_AT)
        await run.reaches(lambda state: state.refusals_total == SUGGESTED_AT)
        assert (await run.handle.describe()).run_id != run.handle.first_execution_run_id
        if decided:
            await lost.desk.says(subject, pending, "boss")
            await run.response()
        await lost.tries_again()
        assert ["accepted"] * (1 + decided) == await lost.desk.outcomes(subject)
        # This person's other comment is another answer.
        await lost.desk.says(subject, pending)
        assert await lost.desk.became(subject) == ("not_pending" if decided else "duplicate")
        if not decided:
            await run.handle.terminate()
