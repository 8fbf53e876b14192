"""EvidenceLoop on a real server: every status, every bound, and input that is none."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from pydantic import JsonValue
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from tests.workflow import raw
from tests.workflow.raw import ODD_PAYLOADS, as_json, payload
from tests.workflow.runs import SECONDS, Run
from tests.workflow.world import World
from triage.contracts.canonical import digest_of
from triage.contracts.incident import LoopResult
from triage.contracts.names import EVIDENCE_LOOP

EVIDENCE: dict[str, JsonValue] = {"latency": {"p95_ms": 1_800}, "errors": None, "deploys": []}
FINISH: JsonValue = {"action": "finish", "argument": None}


def read(ref: str) -> JsonValue:
    """The adapter asks for one reference."""
    return {"action": "read", "argument": ref}


async def investigate(
    world: World,
    *decisions: JsonValue,
    limit: int = 5,
    **changes: Any,  # noqa: ANN401 - any fields at all
) -> LoopResult:
    """Run one investigation to its end."""
    incident = {"incident_id": "INC-1", "limit": limit, "evidence": EVIDENCE, **changes}
    if decisions:
        incident["decisions"] = [*decisions]
    result: LoopResult = await world.client.execute_workflow(
        EVIDENCE_LOOP,
        args=[incident],
        id=f"loop-{uuid.uuid4().hex}",
        task_queue=world.queue,
        result_type=LoopResult,
    )
    return result


CASES: list[tuple[str, list[JsonValue], int, str, list[str]]] = [
    ("a read and a finish", [read("latency"), FINISH], 5, "complete", ["latency"]),
    (
        "every reference once",
        [read("errors"), read("latency"), read("deploys"), FINISH],
        4,
        "complete",
        ["errors", "latency", "deploys"],
    ),
    ("a finish at once", [FINISH], 5, "unsupported", []),
    ("another reference", [read("secrets")], 5, "denied", []),
    ("a reference in other letters", [read("Latency")], 5, "denied", []),
    ("another action", [{"action": "write", "argument": "latency"}], 5, "denied", []),
    ("a denied read after a good one", [read("latency"), read("x")], 5, "denied", ["latency"]),
    ("the same twice", [read("latency"), read("latency")], 5, "repeated", ["latency"]),
    ("the limit right after a good read", [read("latency")], 1, "exhausted", ["latency"]),
    (
        "a finish past the limit",
        [read("latency"), read("errors"), FINISH],
        2,
        "exhausted",
        ["latency", "errors"],
    ),
    ("no decision", [None], 5, "invalid", []),
    ("text", ["read latency"], 5, "invalid", []),
    ("a field too many", [{**FINISH, "why": "done"}], 5, "invalid", []),  # type: ignore[dict-item] # an object
    ("a read of nothing", [{"action": "read", "argument": None}], 5, "denied", []),
    ("a number for a reference", [{"action": "read", "argument": 1}], 5, "invalid", []),
    ("an invalid one after a read", [read("latency"), 7], 5, "invalid", ["latency"]),
    ("an adapter that raises", [{"error": "boom"}], 5, "adapter_error", []),
    (
        "one that raises later",
        [read("latency"), {"error": "boom"}],
        5,
        "adapter_error",
        ["latency"],
    ),
    ("a script past its end", [read("latency")], 5, "adapter_error", ["latency"]),
]


@pytest.mark.parametrize(
    ("case", "decisions", "limit", "status", "refs"), CASES, ids=[case[0] for case in CASES]
)
async def test_how_an_investigation_ends(
    world: World, case: str, decisions: list[JsonValue], limit: int, status: str, refs: list[str]
) -> None:
    """Each sequence of decisions ends in its status, with exactly the permitted reads recorded."""
    result = await investigate(world, *decisions, limit=limit)
    assert (status, len(refs)) == (result.status, result.reads)
    assert [(step, "read", ref) for step, ref in enumerate(refs, start=1)] == [
        (event.step, event.tool, event.ref) for event in result.events
    ]


async def test_the_demo_adapter_finds_what_it_looks_for(world: World) -> None:
    """Without decisions the demo adapter reads the latency and finishes."""
    result = await investigate(world)
    assert ("complete", 1, "demo@1") == (result.status, result.reads, result.adapter)


async def test_the_demo_adapter_is_bounded_too(world: World) -> None:
    """Without its reference the demo adapter is denied; with a limit of one it is exhausted."""
    assert "denied" == (await investigate(world, evidence={"errors": 1})).status
    assert "exhausted" == (await investigate(world, limit=1)).status


async def test_the_record_says_what_the_investigation_was_held_to(world: World) -> None:
    """The record names incident, adapter, limit and a digest of the permitted references."""
    result = await investigate(world, read("latency"), FINISH, limit=100)
    assert ("INC-1", 100) == (result.incident_id, result.limit)
    assert digest_of(sorted(EVIDENCE)) == result.references_digest
    assert result.adapter.startswith("recorded@")


async def test_values_stay_out_of_the_events(world: World) -> None:
    """Beside the start's own input, the history holds references to what was read, not values."""
    run_id = f"loop-{uuid.uuid4().hex}"
    incident = {"incident_id": "INC-1", "limit": 3, "evidence": {"latency": "XYZZY-42"}}
    handle = await world.client.start_workflow(
        EVIDENCE_LOOP, args=[incident], id=run_id, task_queue=world.queue, result_type=LoopResult
    )
    await handle.result(rpc_timeout=None)
    _, *rest = (await handle.fetch_history()).events
    assert all(b"XYZZY-42" not in event.SerializeToString() for event in rest)
    events = await raw.query(world, Run(world.client.get_workflow_handle(run_id)), "state")
    assert [{"step": 1, "tool": "read", "ref": "latency"}] == events


WRONG: list[dict[str, Any]] = [
    {"limit": True},
    {"limit": 0},
    {"limit": 101},
    {"limit": "5"},
    {"limit": 1.0},
    {"incident_id": ""},
    {"incident_id": None},
    {"evidence": []},
    {"evidence": {"": 1}},
    {"decisions": "finish"},
    {"surprise": 1},
]


@pytest.mark.parametrize("changes", WRONG, ids=range(len(WRONG)))
async def test_an_incident_is_exactly_its_fields(world: World, changes: dict[str, Any]) -> None:
    """An incident with a wrong field fails as invalid_input; booleans are no numbers."""
    with pytest.raises(WorkflowFailureError) as caught:
        await investigate(world, **changes)
    assert isinstance(caught.value.cause, ApplicationError)
    assert "invalid_input" == caught.value.cause.type


@pytest.mark.parametrize("case", [*ODD_PAYLOADS, "no input", "two inputs", "brackets"])
async def test_any_other_input_fails_cleanly(world: World, case: str) -> None:
    """Whatever else it is started with, the investigation fails at once, and no task is retried."""
    good = as_json({"incident_id": "INC-1", "limit": 3, "evidence": EVIDENCE})
    large = payload(b'{"evidence": [' + b"[]," * 600_000 + b"0]}")
    others = {"no input": [], "two inputs": [good, good], "brackets": [large]}
    payloads = others[case] if case in others else [ODD_PAYLOADS[case]]
    run = await raw.start(world, payloads, kind=EVIDENCE_LOOP)
    with pytest.raises(WorkflowFailureError) as caught:
        await run.response(SECONDS)
    assert isinstance(caught.value.cause, ApplicationError)
    assert "invalid_input" == caught.value.cause.type
    assert [] == await run.task_failures()
