"""Which approved writes reach the tracker, and which never do."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import pytest
from pydantic import JsonValue
from sqlalchemy import delete

from activities.reads import READ_HANDLERS, RawRead, lookup_component_owner
from tests.workflow.decisions import (
    API_PATH,
    ISSUE,
    OPERATION,
    call,
    final,
    hand_over,
    label,
    lookup,
)
from tests.workflow.runs import outcome
from tests.workflow.world import World, altered_world
from triage.contracts.failures import LABEL_REMOVED
from triage.contracts.response import Status
from triage.policy.rules import Rules
from triage.storage.schema import tracker_labels
from triage.trackers.local_rows import label_key

REVIEW = Status.REVIEW_REQUIRED
FINAL = final("mutation-receipt", labels=("bug",))
AT_START: JsonValue = {OPERATION: 3}


@pytest.mark.parametrize("issue", ["ISSUE-2", "issue-1", " ISSUE-1", "#ISSUE-1", "1"])
async def test_a_write_to_another_issue_is_blocked(world: World, issue: str) -> None:
    """Only the request's own issue can be written to, spelled exactly, approval or not."""
    script = [label(issue=issue), FINAL]
    for approvals in (AT_START, {}):
        run = await world.start(*script, mode="approve", approvals=approvals)
        assert (REVIEW, "policy_block") == outcome(await run.response())
        assert [(OPERATION, 3, "blocked")] == await run.operation_states()
        assert ([], []) == (await world.written(run), await run.mutations())


async def test_an_unapproved_write_to_another_issue_needs_an_approval_first(world: World) -> None:
    """Where nobody is waited for, an unapproved write is unapproved, whatever it is about."""
    run = await world.start(label(issue="ISSUE-2"), FINAL, mode="suggest")
    assert (REVIEW, "approval_required") == outcome(await run.response())
    assert [(OPERATION, False, False, "approval_required")] == await run.mutation_facts()
    assert [] == await world.written(run)


async def test_the_issue_of_a_run_is_what_admission_says(world: World) -> None:
    """With an issue in its context the run writes there, and not to the request's id."""
    script = [label(issue="4711"), FINAL]
    run = await world.start(*script, approvals=AT_START, context={"issue": "4711"})
    assert Status.COMPLETED is (await run.response()).status
    assert ["bug"] == await world.written(run, "4711")


@pytest.mark.parametrize("labels", [("triage:automerge",), ("bug", "vip"), ("BUG",)])
async def test_a_label_that_policy_does_not_permit_is_blocked(
    world: World, labels: tuple[str, ...]
) -> None:
    """One label outside the rules blocks the whole write, even if the tracker has it."""
    repository = f"seeded-{uuid.uuid4().hex}"
    await world.tracker.seed_labels(repository, ["bug", "vip", "triage:automerge"])
    run = await world.start(label(*labels), FINAL, mode="approve", run_id=repository)
    assert (REVIEW, "policy_block") == outcome(await run.response())
    assert [(OPERATION, 3, "blocked")] == await run.operation_states()
    assert ([], []) == (await world.written(run), await run.mutations())


@pytest.mark.parametrize(("approvals", "state"), [({}, "blocked"), (AT_START, "refused")])
async def test_a_label_that_the_tracker_does_not_have_is_never_created(
    world: World, approvals: JsonValue, state: str
) -> None:
    """A label outside the tracker's inventory blocks the write, before and after an approval."""
    script = [label("bug", "component:api"), FINAL]
    repository = f"seeded-{uuid.uuid4().hex}"
    await world.tracker.seed_labels(repository, ["bug"])
    run = await world.start(*script, mode="approve", approvals=approvals, run_id=repository)
    response = await run.response()
    assert (REVIEW, "policy_block") == outcome(response)
    assert response.reason.endswith(': "component:api"')
    assert [(OPERATION, 3, state)] == await run.operation_states()
    assert [] == await world.written(run)
    assert ("bug",) == await world.tracker.label_inventory(run.id)


async def test_a_label_that_a_person_removed_is_not_put_back(world: World) -> None:
    """An approval does not overrule the person who took a label off; no other label goes on."""
    script = [label("bug", "component:api"), FINAL]
    run = await world.start(*script, mode="approve")
    await run.waiting()
    await world.tracker.add_label(run.id, ISSUE, "bug", by="ann")
    await world.tracker.remove_label(run.id, ISSUE, "bug", by="ann")
    await run.review("approve")
    assert (REVIEW, "policy_block") == outcome(await run.response())
    assert [(OPERATION, 3, "refused")] == await run.operation_states()
    assert [] == await world.written(run)


async def test_what_a_person_took_off_is_not_proposed_again(world: World) -> None:
    """A later run on the same issue asks nobody for it, whoever proposes it; the answer stays."""
    first = await world.start(label(), FINAL, mode="approve")
    await first.waiting()
    await first.review("approve")
    assert Status.COMPLETED is (await first.response()).status
    await world.tracker.remove_label(first.id, ISSUE, "bug", by="ann")
    by_model, by_us = [label(), FINAL], [lookup(), final("owners-api")]
    for script in (by_model, by_us):
        run = await world.start(*script, mode="approve", context={"repository": first.id})
        response = await run.response()
        assert (REVIEW, "policy_block") == outcome(response)
        assert LABEL_REMOVED in (response.reason or "")
        assert ["blocked"] == [state for _, _, state in await run.operation_states()]
    assert ("bug", "component:api") == response.labels
    assert ["added", "removed"] == [what for _, what, _ in await world.label_events(first)]


async def test_an_unchanged_issue_is_not_written_to_twice(world: World) -> None:
    """Two runs with different answers flip nothing: the second one adds, and takes nothing off."""
    first = await world.start(label(), FINAL, mode="approve")
    await first.waiting()
    await first.review("approve")
    await first.response()
    script = [label("bug", "documentation"), FINAL]
    second = await world.start(*script, mode="approve", context={"repository": first.id})
    pending = await second.waiting()
    assert (("bug",), ("bug", "documentation")) == (pending.labels_before, pending.labels_after)
    await second.review("approve")
    assert Status.COMPLETED is (await second.response()).status
    assert [("bug", "added"), ("documentation", "added")] == [
        (name, what) for name, what, _ in await world.label_events(first)
    ]


async def test_a_label_that_is_another_one_by_now_is_a_conflict(world: World) -> None:
    """The name that was approved is on another label: the run ends without a write."""
    run = await world.start(label(), FINAL, mode="approve")
    await run.waiting()
    async with world.services.store.write() as connection:
        mine = tracker_labels.c.label_key == label_key(run.id, "bug")
        await connection.execute(delete(tracker_labels).where(mine))
    await world.tracker.seed_labels(run.id, ["bug"])
    await run.review("approve")
    assert (REVIEW, "state_conflict") == outcome(await run.response())
    assert [] == await world.written(run)


async def test_a_run_reads_its_own_issue(world: World) -> None:
    """The issue as it is now is evidence that a decision may cite, and no other issue is read."""
    asks = call("read_issue", {"issue_id": ISSUE})
    run = await world.start(asks, hand_over())
    assert Status.REVIEW_REQUIRED is (await run.response()).status
    [read] = (await run.state()).evidence
    assert ("read_issue", f"local:{run.id}") == (read.tool, read.source)
    other = await world.start(call("read_issue", {"issue_id": "ISSUE-2"}), hand_over())
    assert (Status.FAILED, "tool_error") == outcome(await other.response())


async def test_a_label_that_is_there_already_is_success(world: World) -> None:
    """A person who was faster leaves nothing to add: the run sees the label and goes on."""
    run = await world.start(label(), FINAL, mode="approve")
    await run.waiting()
    await world.tracker.add_label(run.id, ISSUE, "bug", by="ann")
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status
    assert [("bug", "added", "ann")] == await world.label_events(run)
    assert [(OPERATION, True, True, "approved")] == await run.mutation_facts()


async def test_a_repeated_operation_answers_the_first_receipt(world: World) -> None:
    """The same call again, approved again, executes nothing: one event, one receipt, replayed."""
    script = [label(), label(), label(), FINAL]
    run = await world.start(*script, mode="approve", max_steps=4)
    for version in (3, 6, 9):
        assert version == (await run.waiting_at(version)).version
        await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status
    assert [("bug", "added", "bounded-triage")] == await world.label_events(run)
    assert [
        (OPERATION, True, True, "approved"),
        (OPERATION, False, True, "idempotent_replay"),
        (OPERATION, False, True, "idempotent_replay"),
    ] == await run.mutation_facts()
    assert [(OPERATION, 3, "applied"), (OPERATION, 6, "replayed"), (OPERATION, 9, "replayed")] == (
        await run.operation_states()
    )
    receipts = {(item.id, item.digest) for item in (await run.state()).evidence}
    assert 1 == len(receipts)


async def test_a_repeat_needs_an_approval_of_its_own(world: World) -> None:
    """The first approval does not carry over: without a second one the repeat is unapproved."""
    run = await world.start(label(), label(), FINAL, approvals=AT_START)
    assert (REVIEW, "approval_required") == outcome(await run.response())
    assert [
        (OPERATION, True, True, "approved"),
        (OPERATION, False, False, "approval_required"),
    ] == await run.mutation_facts()


async def test_label_order_and_repeats_are_the_same_operation(world: World) -> None:
    """The labels of an operation are a set: another order of them is a repeat, not a conflict."""
    script = [label("bug", "component:api"), label("component:api", "bug", "bug"), FINAL]
    run = await world.start(*script, mode="approve")
    await run.review("approve")
    await run.waiting_at(6)
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status
    assert ["bug", "component:api"] == await world.written(run)


async def test_an_operation_id_with_other_arguments_is_a_conflict(world: World) -> None:
    """An id that was used for one write is never executed for another; nobody is asked again."""
    run = await world.start(label("bug"), label("component:api"), FINAL, mode="approve")
    await run.review("approve")
    assert (REVIEW, "state_conflict") == outcome(await run.response())
    assert [(OPERATION, 3, "applied"), (OPERATION, 6, "conflict")] == await run.operation_states()
    assert ["bug"] == await world.written(run)
    assert [(OPERATION, True, True, "approved")] == await run.mutation_facts()


async def test_another_operation_id_is_another_write(world: World) -> None:
    """Two operations of one run are approved and written one after the other."""
    script = [label("bug"), label("component:api", operation_id="op-106"), FINAL]
    run = await world.start(*script, mode="approve")
    await run.review("approve")
    await run.waiting_at(6)
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status
    assert ["bug", "component:api"] == await world.written(run)


CHANGES = [
    {"title": "Another title"},
    {"body": "Another body"},
    {"state": "closed"},
    {"locked": True},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
async def test_an_issue_that_changed_after_it_was_shown_voids_the_approval(
    world: World, change: dict[str, str]
) -> None:
    """A title, body, state or lock that changed while a person decided ends in state_conflict."""
    run = await world.start(label(), FINAL, mode="approve")
    await run.waiting()
    await world.tracker.edit_issue(run.id, ISSUE, by="ann", **change)  # type: ignore[arg-type] # one of its fields
    await run.review("approve")
    assert (REVIEW, "state_conflict") == outcome(await run.response())
    assert [(OPERATION, 3, "conflict")] == await run.operation_states()
    assert [] == await world.written(run)


async def test_an_issue_that_changed_before_it_was_shown_is_not_shown(world: World) -> None:
    """An issue edited between its reading and the proposal ends in state_conflict, unasked."""

    async def edit_meanwhile(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
        repository = str(arguments["path"])
        await world.tracker.edit_issue(repository, ISSUE, by="ann", title="Another title")
        return await lookup_component_owner({"path": API_PATH}, rules)

    handlers = {**READ_HANDLERS, "lookup_component_owner": edit_meanwhile}
    async with altered_world(world, handlers=handlers) as editing:
        run_id = f"edited-{uuid.uuid4().hex}"
        script = [lookup(run_id), final("owners-api")]
        run = await editing.start(*script, mode="approve", run_id=run_id)
        assert (REVIEW, "state_conflict") == outcome(await run.response())
        assert [("op-6", 6, "conflict")] == await run.operation_states()
        assert [] == await run.mutations()


async def test_a_label_is_no_change_of_the_issue(world: World) -> None:
    """Labels that people add while one decides do not void the approval."""
    run = await world.start(label(), FINAL, mode="approve")
    await run.waiting()
    await world.tracker.add_label(run.id, ISSUE, "documentation", by="ann")
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status
    assert ["bug"] == await world.written(run)


async def test_a_deliberate_new_run_is_another_operation(world: World) -> None:
    """The same operation in a new run of the issue is approved and recorded anew, not replayed."""
    first = await world.start(label(), FINAL, approvals=AT_START)
    assert Status.COMPLETED is (await first.response()).status
    context = {"repository": first.id}
    second = await world.start(label(), FINAL, approvals=AT_START, context=context)
    assert Status.COMPLETED is (await second.response()).status
    assert [(OPERATION, True, True, "approved")] == await second.mutation_facts()
    assert ["bug"] == await world.written(first)
    digests = [(await run.state()).evidence[0].digest for run in (first, second)]
    assert digests[0] != digests[1]


async def test_the_receipt_is_small_and_says_on_whose_word(world: World) -> None:
    """A receipt names operation, labels, approver and policy, and stays under 4 KiB."""
    run = await world.start(label(), FINAL, mode="approve")
    await run.review("approve")
    await run.response()
    [operation] = await world.services.ledger.list(workflow_id=run.id)
    assert operation.receipt is not None
    assert len(operation.receipt) < 4_096
    for part in (b'"maintainer"', b'"op-105"', b'"bug"', b'"applied_by_us"', b'"policy"'):
        assert part in operation.receipt
    assert operation.receipt_digest == (await run.state()).evidence[0].digest
