"""The exact JSON that the queries, the update and the run itself answer: others rely on it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from tests.workflow import raw
from tests.workflow.decisions import ISSUE, OPERATION, final, label, lookup
from tests.workflow.runs import envelope
from tests.workflow.world import World
from triage.contracts.response import Status

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
STATE = [
    "decisions",
    "evidence",
    "operations",
    "pending",
    "provenance",
    "refusals",
    "refusals_total",
    "response",
    "retries",
    "spent",
    "status",
    "steps",
    "tool_sequence",
    "trail",
    "version",
]
PENDING = [
    "arguments",
    "digest",
    "expires_at",
    "labels_after",
    "labels_before",
    "operation_id",
    "proposed_at",
    "proposed_by",
    "target",
    "tool",
    "version",
]
RESPONSE = [
    "evidence_ids",
    "failure",
    "labels",
    "owner",
    "reason",
    "request_id",
    "retries",
    "route",
    "run_id",
    "status",
    "steps",
    "tool_sequence",
]
TIMES = ("proposed_at", "expires_at")
PROVENANCE = ["model", "orchestrator", "policy", "prices", "prompt", "tools"]


async def test_the_state_of_a_waiting_run(world: World) -> None:
    """A run that waits shows all that it did, what it spent and what it waits for."""
    run = await world.start(lookup(), label("bug", "component:api"), mode="approve")
    await run.waiting()
    state = await raw.query(world, run, "state")
    assert sorted(state) == STATE
    assert ("tool_pending", 6, 2, 0, 0, None, []) == (
        state["status"],
        state["version"],
        state["steps"],
        state["retries"],
        state["refusals_total"],
        state["response"],
        state["refusals"],
    )
    assert ["lookup_component_owner", "apply_labels"] == state["tool_sequence"]
    assert [
        {"step": 1, "kind": "call_tool", "call_id": "call-1", "tool": "lookup_component_owner"},
        {"step": 2, "kind": "call_tool", "call_id": "call-1", "tool": "apply_labels"},
    ] == state["decisions"]
    [evidence] = state["evidence"]
    assert ["digest", "id", "locator", "source", "tool"] == sorted(evidence)
    assert ("owners-api", "lookup_component_owner") == (evidence["id"], evidence["tool"])
    assert re.fullmatch(r"builtin@[0-9a-f]{12}#owners-api", evidence["locator"])
    assert ["cost_micros", "evidence_bytes", "seconds", "tokens"] == sorted(state["spent"])
    assert PROVENANCE == sorted(state["provenance"])
    assert state["provenance"]["orchestrator"].startswith("bounded-triage/")
    assert state["provenance"]["model"].startswith("recorded@sha256:")
    assert DIGEST.fullmatch(state["provenance"]["policy"])
    assert state["pending"] == await raw.query(world, run, "pending")
    await run.handle.terminate()


async def test_the_pending_operation(world: World) -> None:
    """The pending operation is exactly what a reviewer is asked to approve."""
    run = await world.start(label("component:api", "bug"), mode="approve")
    await run.waiting()
    pending = await raw.query(world, run, "pending")
    assert sorted(pending) == PENDING
    times = [datetime.fromisoformat(pending[name]) for name in ("proposed_at", "expires_at")]
    assert timedelta(hours=72) == times[1] - times[0]
    assert all(moment.utcoffset() == timedelta(0) for moment in times)
    assert DIGEST.fullmatch(pending["digest"])
    assert {
        "operation_id": OPERATION,
        "version": 3,
        "tool": "apply_labels",
        "target": {"tracker": "local", "repository": run.id, "issue": ISSUE},
        "arguments": {"issue_id": ISSUE, "labels": ["bug", "component:api"]},
        "labels_before": [],
        "labels_after": ["bug", "component:api"],
        "proposed_by": "model",
    } == {name: pending[name] for name in PENDING if name not in {"digest", *TIMES}}
    await run.handle.terminate()


async def test_what_is_shown_includes_the_labels_that_are_there(world: World) -> None:
    """A reviewer sees the labels before and after, those that people put on included."""
    first = await world.start(lookup(), final("owners-api"))
    await first.response()
    await world.tracker.add_label(first.id, ISSUE, "documentation", by="ann")
    run = await world.start(label("bug"), mode="approve", context={"repository": first.id})
    pending = await run.waiting()
    assert (("documentation",), ("bug", "documentation")) == (
        pending.labels_before,
        pending.labels_after,
    )
    await run.handle.terminate()


async def test_the_digest_covers_everything_that_is_shown(world: World) -> None:
    """Other labels, another version or another issue text give another digest to approve."""
    digests = []
    for script in ([label("bug")], [label("component:api")], [lookup(), label("bug")]):
        run = await world.start(*script, mode="approve", context={"repository": "digests"})
        digests.append((await run.waiting()).digest)
        await run.handle.terminate()
    again = await world.start(label("bug"), mode="approve", context={"repository": "digests"})
    assert digests[0] == (await again.waiting()).digest
    assert 3 == len(set(digests))
    await again.handle.terminate()
    await world.tracker.edit_issue("digests", ISSUE, by="ann", title="Another title")
    other = await world.start(label("bug"), mode="approve", context={"repository": "digests"})
    assert (await other.waiting()).digest not in digests
    await other.handle.terminate()


async def test_nothing_pending_is_null(world: World) -> None:
    """A run that does not wait answers `pending` with null."""
    run = await world.start(lookup(), final("owners-api"))
    await run.response()
    assert await raw.query(world, run, "pending") is None


async def test_the_state_of_a_run_that_ended(world: World) -> None:
    """After the end the state holds the response, and every list that led to it."""
    run = await world.start(label(), final("mutation-receipt", labels=("bug",)), mode="approve")
    pending = await run.waiting()
    await run.signal("approve", envelope(pending, version=9))
    await run.review("approve")
    response = await run.response()
    state = await raw.query(world, run, "state")
    assert ["approve"] == [note["verdict"] for note in state.pop("verdicts")]
    assert (sorted(state), state["trail"]) == (STATE, ""), "it has read nothing"
    assert (None, "completed", 6) == (state["pending"], state["status"], state["version"])
    assert response.model_dump(mode="json") == state["response"]
    [operation] = state["operations"]
    assert {"operation_id": OPERATION, "version": 3, "state": "applied"} == {
        name: value for name, value in operation.items() if name != "digest"
    }
    assert DIGEST.fullmatch(operation["digest"])
    assert operation["digest"] != pending.digest
    [refusal] = state["refusals"]
    assert ["approver", "at", "code", "operation_id", "reason", "version"] == sorted(refusal)


async def test_the_mutations_of_a_run(world: World) -> None:
    """Each proposed write is listed with whether it ran, and on what authority."""
    run = await world.start(
        label(), label("component:api", operation_id=None), approvals={OPERATION: 3}
    )
    await run.response()
    assert [
        {
            "operation_id": OPERATION,
            "tool": "apply_labels",
            "executed": True,
            "authorized": True,
            "reason": "approved",
        },
        {
            "operation_id": None,
            "tool": "apply_labels",
            "executed": False,
            "authorized": False,
            "reason": "approval_required",
        },
    ] == await raw.query(world, run, "mutations")


async def test_a_response_has_exactly_twelve_fields(world: World) -> None:
    """Every answer, also that to input which is none, has the twelve fields and no other."""
    good = await world.start(lookup(), final("owners-api"))
    for run in (good, await raw.start(world, [])):
        await run.response()
        last = (await run.events())[-1].workflow_execution_completed_event_attributes
        assert RESPONSE == sorted(raw.read(last.result.payloads[0]))


async def test_the_answer_of_an_update(world: World) -> None:
    """An accepted review is told so, with the version that it was for."""
    run = await world.start(label(), final("mutation-receipt", labels=()), mode="approve")
    answer = await run.review("approve")
    assert {"accepted": True, "code": "accepted", "version": 3} == answer.model_dump(
        exclude_unset=True
    )
    assert Status.COMPLETED is (await run.response()).status
