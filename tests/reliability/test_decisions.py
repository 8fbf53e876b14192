"""Decisions that come together, from strangers, or as their run ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import JsonValue
from temporalio.api.enums.v1 import EventType
from temporalio.service import RPCError

from tests.activities.scripted_tracker import ScriptedTracker
from tests.reliability.answers import ACCEPTED, TOO_LATE, only_closed, told, told_why
from tests.reliability.commands import Shell
from tests.reliability.far_end import with_tracker
from tests.reliability.signing import SCRIPT, Signed, opened_signed
from tests.workflow.decisions import OPERATION
from tests.workflow.gate import Gate
from tests.workflow.runs import Run, envelope, eventually, outcome
from tests.workflow.world import World, altered_world
from triage.contracts.response import Status
from triage.contracts.state import PendingView

FIFTY: Final = 50
SIGNALED: Final = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED


def _reviews(pending: PendingView, *verdicts: str) -> list[dict[str, Any]]:
    """Fifty people's reviews of what is pending, the verdicts taking turns."""
    return [
        {
            **envelope(pending, approver=f"person-{number}"),
            "verdict": verdicts[number % len(verdicts)],
        }
        for number in range(FIFTY)
    ]


async def test_fault_04_fifty_approvals_at_once_write_once(world: World) -> None:
    """One of fifty approvals counts, the others are told at once whose it was; one write."""
    gate = Gate()
    tracker = ScriptedTracker(gate=gate)
    async with altered_world(world, services=with_tracker(world.services, tracker)) as opened:
        run = await opened.start(*SCRIPT, mode="approve", context={"tracker": "scripted"})
        reviews = _reviews(await run.waiting(), "approve")
        answers = await asyncio.gather(*(told_why(run, review) for review in reviews))
        # Until here the write is held, so that nobody finds the run ended.
        gate.open()
        response = await run.response()
        operations = await run.operation_states()
    [heard] = _heard(reviews, [code for code, _ in answers])
    refused = [why for code, why in answers if code != ACCEPTED]
    assert {"duplicate"} == {code for code, _ in answers} - {ACCEPTED}
    assert [True] * 49 == [f"approved by {heard['approver']} at " in why for why in refused]
    assert (Status.COMPLETED, 1) == (response.status, tracker.calls)
    assert [("bug",)] == [commit.labels for commit in tracker.commits]
    assert [(OPERATION, 3, "applied")] == operations
    [row] = await world.services.ledger.list(workflow_id=run.id)
    assert (1, 1) == (row.epoch, row.dispatches)


def _heard(reviews: list[dict[str, Any]], codes: list[str]) -> list[dict[str, Any]]:
    return [review for review, code in zip(reviews, codes, strict=True) if code == ACCEPTED]


@pytest.mark.parametrize("verdicts", [("approve", "reject"), ("reject", "approve")])
async def test_fault_04_approvals_against_rejections_leave_one_decision(
    world: World, verdicts: tuple[str, str]
) -> None:
    """Of fifty people who disagree one is heard, and what happens is what that one said."""
    run = await world.start(*SCRIPT, mode="approve")
    reviews = _reviews(await run.waiting(), *verdicts)
    answers = await asyncio.gather(*(told(run, review) for review in reviews))
    response = await run.response()
    [heard] = _heard(reviews, answers)
    assert {*answers} - {ACCEPTED} <= TOO_LATE
    approved = heard["verdict"] == "approve"
    assert (Status.COMPLETED if approved else Status.REVIEW_REQUIRED) is response.status
    assert (["bug"] if approved else []) == await world.written(run)
    state = "applied" if approved else "rejected"
    assert [(OPERATION, 3, state)] == await run.operation_states()


@pytest.fixture
async def signed(world: World, tmp_path: Path) -> AsyncIterator[Signed]:
    """A worker that counts nothing but signatures."""
    async with opened_signed(world, tmp_path) as opened:
        yield opened


async def test_fault_05_a_forged_signal_changes_nothing(signed: Signed, tmp_path: Path) -> None:
    """Whatever the plain program signals, it is kept with a code, and the run waits as before."""
    shell = Shell(tmp_path, signed.world.client)
    asked = await signed.waiting(context={"tenant": "acme"})
    other_tenant = await signed.waiting(context={"tenant": "other"})
    before = await asked.run.state()
    good = asked.envelope(None)
    stolen = other_tenant.token()
    wider = f"sha256:{'0' * 64}"
    forged: list[tuple[list[Any], str]] = [
        ([True], "malformed"),
        (["yes"], "malformed"),
        ([{"approved": True}], "malformed"),
        ([], "malformed"),
        ([good, good], "malformed"),
        ([{**good, "version": "3"}], "malformed"),
        ([{**good, "version": True}], "malformed"),
        ([{**good, "operation_id": [OPERATION]}], "malformed"),
        ([good], "unauthorised"),
        ([{**good, "digest": wider}], "digest_mismatch"),
        (
            [{**good, "digest": wider, "token": asked.token(operation_digest=wider)}],
            "digest_mismatch",
        ),
        ([{**good, "token": stolen}], "not_pending"),
        ([{**good, "token": stolen, "digest": other_tenant.pending.digest}], "digest_mismatch"),
        ([{**good, "token": asked.token(workflow_id=other_tenant.run.id)}], "not_pending"),
    ]
    for inputs, _ in forged:
        sent = await shell.signal(asked.run.id, "approve", *map(json.dumps, inputs))
        assert 0 == sent.status, sent.err
    state = await asked.run.reaches(lambda found: found.refusals_total == len(forged))
    assert [code for _, code in forged] == [refusal.code for refusal in state.refusals]
    kept = {"refusals": before.refusals, "refusals_total": 0}
    assert before == state.model_copy(update=kept)
    assert [] == await signed.world.written(asked.run)
    assert () == await signed.world.services.ledger.list(workflow_id=asked.run.id)
    assert ACCEPTED == await told(asked.run, asked.review(asked.token()))
    assert Status.COMPLETED is (await asked.run.response()).status
    assert ["bug"] == await signed.world.written(asked.run)
    await other_tenant.run.handle.terminate()


async def _storm(run: Run, name: str, message: JsonValue) -> int:
    """Send one after the other until the server refuses; return how many it took."""
    taken = 0
    while True:
        try:
            await run.signal(name, message)
        except RPCError as error:
            only_closed(error)
            return taken
        taken += 1


@pytest.mark.parametrize("name", ["approve", "reject"])
async def test_fault_06_a_decision_that_comes_as_the_run_ends_is_counted_or_refused(
    world: World, name: str
) -> None:
    """Of a storm of signals over a run's last moments each is in the state, or its sender told."""
    run = await world.start(*SCRIPT, mode="approve")
    pending = await run.waiting()

    messages = [envelope(pending, approver=f"person-{sender}") for sender in range(4)]
    taken = sum(await asyncio.gather(*(_storm(run, name, message) for message in messages)))
    response = await run.response()
    events = [event.event_type for event in await run.events()]
    assert taken == events.count(SIGNALED)
    # All but the one that decided.
    assert taken - 1 == (await run.state()).refusals_total
    if name == "approve":
        assert Status.COMPLETED is response.status
        assert ["bug"] == await world.written(run)
    else:
        assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(response)
        assert [] == await world.written(run)


@pytest.mark.parametrize("way", ["signal", "update"])
async def test_fault_06_no_message_is_lost_while_a_run_continues_as_new(
    early_world: World, way: str
) -> None:
    """Over all executions of a run each signal that the server took is counted, and one decides."""
    run = await early_world.start(*SCRIPT, mode="approve")
    pending = await run.waiting()
    good = envelope(pending)
    stale = {**good, "version": pending.version + 1}
    storms = [asyncio.create_task(_storm(run, "approve", stale)) for _ in range(4)]

    async def went_on() -> bool:
        return (await run.handle.describe()).run_id != run.handle.first_execution_run_id

    assert await eventually(went_on)
    if way == "signal":
        await run.signal("approve", good)
    else:
        assert ACCEPTED == await told(run, {**good, "verdict": "approve"})
    taken = sum(await asyncio.gather(*storms))
    assert Status.COMPLETED is (await run.response()).status
    assert taken == (await run.state()).refusals_total
    assert ["bug"] == await early_world.written(run)
    assert [(OPERATION, 3, "applied")] == await run.operation_states()
    assert taken + (way == "signal") == await _signaled(early_world, run)


async def _signaled(world: World, run: Run) -> int:
    """Count the signals in the histories of all executions of a run."""
    count = 0
    execution: str | None = (await run.handle.describe()).run_id
    while execution:
        handle = world.client.get_workflow_handle(run.id, run_id=execution)
        events = list((await handle.fetch_history()).events)
        count += [event.event_type for event in events].count(SIGNALED)
        started = events[0].workflow_execution_started_event_attributes
        execution = started.continued_execution_run_id
    return count
