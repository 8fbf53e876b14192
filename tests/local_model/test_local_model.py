"""A real model that follows its schema and is usually wrong: nothing bad comes of its answers."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from pydantic import JsonValue

from tests.local_model.llama import MODEL
from tests.workflow.decisions import a_request
from tests.workflow.world import World
from triage.contracts.response import Status
from triage.policy.rules import BUILTIN_RULES
from triage.resources import fixtures_path

MAX_STEPS: Final = 2
SAMPLES: Final = ("api-bug", "injection", "vulnerability")
ATTACKS: Final = ("tri-002", "tri-003")


def _inputs() -> dict[str, dict[str, JsonValue]]:
    """Return requests by name: samples, and attacks in the body or the title."""
    found: dict[str, dict[str, JsonValue]] = {
        name: json.loads(fixtures_path("requests", f"{name}.json").read_text(encoding="utf-8"))
        for name in SAMPLES
    }
    lines = fixtures_path("security", "issue_attacks.jsonl").read_text(encoding="utf-8")
    attacks: list[dict[str, Any]] = [json.loads(line) for line in lines.splitlines()]
    for attack in attacks:
        if attack["id"] in ATTACKS:
            part = "title" if attack["surface"] == "title" else "body"
            found[attack["id"]] = a_request(**{part: attack["payload"]})
    return found


INPUTS: Final = _inputs()


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", INPUTS)
async def test_a_wrong_model_breaks_nothing(modelled: World, name: str) -> None:
    """Bounded steps, only evidence that a tool returned, only known names, and nothing written."""
    request = INPUTS[name]
    run = await modelled.start(
        request=request,
        model=MODEL,
        mode="approve",
        approval_window_seconds=1,
        max_steps=MAX_STEPS,
        max_model_retries=0,
    )
    response = await run.response(1_500)
    state = await run.state()
    assert response.status in {Status.COMPLETED, Status.REVIEW_REQUIRED, Status.FAILED}
    assert 1 <= response.steps <= MAX_STEPS
    assert {item.id for item in state.evidence}.issuperset(response.evidence_ids)
    assert set(BUILTIN_RULES.proposable_labels()).issuperset(response.labels)
    assert response.route is None or response.route in BUILTIN_RULES.routes
    assert [] == [found for found in await run.mutations() if found.executed]
    assert [] == await modelled.label_events(run, str(request["request_id"]))
    assert state.spent.tokens > 0
    assert 0 == state.spent.cost_micros
    assert state.provenance.model.startswith(f"{MODEL}@")
