"""Promises of the second opinion: it only takes away, and never lowers from security."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from tests.unit.models.driver import issue, model_request
from tests.unit.models.learned_samples import classifier
from triage.contracts.decision import RequestReview, parse_decision
from triage.contracts.names import ACTIVITY_APPLY_LABELS
from triage.contracts.payloads import DecideOutcome, DecideResult, Usage
from triage.models.second_opinion import DISAGREES, RAISES, SecondOpinion

OPINION = SecondOpinion(classifier())
USED = Usage(tokens=7, cost_micros=9)


def _final(route: JsonValue) -> dict[str, JsonValue]:
    return {
        "kind": "final",
        "route": route,
        "labels": [],
        "owner": "backend-team",
        "evidence_ids": ["owners-api"],
        "reason": "SECRET",
    }


def _review(route: str) -> dict[str, JsonValue]:
    return {"kind": "request_review", "route": route, "reason": "r", "evidence_ids": []}


def _write(*labels: JsonValue, name: str = ACTIVITY_APPLY_LABELS) -> dict[str, JsonValue]:
    arguments: dict[str, JsonValue] = {"issue": "ISSUE-1", "labels": list(labels)}
    tool: dict[str, JsonValue] = {
        "call_id": "c",
        "name": name,
        "arguments": arguments,
        "operation_id": "o",
    }
    return {"kind": "call_tool", "tool": tool}


def _on(title: str, decision: JsonValue) -> JsonValue:
    request = model_request(issue(title, "text"))
    given = DecideResult(outcome=DecideOutcome.DECISION, decision=decision, usage=USED)
    result = OPINION.on(request, given)
    assert USED == result.usage
    if result.decision != decision:
        parsed = parse_decision(
            result.decision, routes=frozenset(request.routes), labels=frozenset(request.labels)
        )
        assert isinstance(parsed, RequestReview)
        assert "SECRET" not in parsed.reason
    return result.decision


@pytest.mark.parametrize(
    ("title", "decision"),
    [
        ("crash", _final("bug")),
        ("odd", _final("bug")),
        ("odd", _final("documentation")),
        ("odd", _final("security_review")),
        ("crash", _final("security_review")),
        ("leak", _final("documentation")),
        ("add", _review("bug")),
        ("crash", _write("bug", "component:api")),
        ("add", _write("component:api")),
        ("add", {"kind": "call_tool", "tool": {"name": "lookup_component_owner"}}),
    ],
    ids=str,
)
def test_what_it_agrees_with_or_has_no_word_on_stays(title: str, decision: JsonValue) -> None:
    """Also a route that it was not taught where it is unsure, a read, and a review."""
    assert decision == _on(title, decision)


@pytest.mark.parametrize(
    ("title", "decision", "route"),
    [
        ("add", _final("bug"), "bug"),
        ("wish", _final("bug"), "bug"),
        ("how", _final("bug"), "bug"),
        ("why", _final("feature"), "feature"),
        ("crash", _final("documentation"), "documentation"),
        ("add", _write("bug"), "bug"),
    ],
    ids=str,
)
def test_what_it_disagrees_with_goes_to_a_person(
    title: str, decision: dict[str, JsonValue], route: str
) -> None:
    """With the model's route and citations, under a reason of ours."""
    cited = decision.get("evidence_ids", [])
    expected = {"kind": "request_review", "route": route, "reason": DISAGREES}
    assert {**expected, "evidence_ids": cited} == _on(title, decision)


@pytest.mark.parametrize("decision", [_final("bug"), _review("feature"), _write("bug")], ids=str)
def test_a_sure_sign_of_security_raises(decision: dict[str, JsonValue]) -> None:
    """A review of another route is raised, too; nothing is ever lowered."""
    raised = _on("hole", decision)
    assert isinstance(raised, dict)
    assert ("security_review", RAISES) == (raised["route"], raised["reason"])


@pytest.mark.parametrize(
    "decision",
    [
        None,
        "final",
        [],
        {},
        {"kind": ["final"]},
        _final(None),
        _final(["bug"]),
        _final("nowhere"),
        {"kind": "call_tool"},
        {"kind": "call_tool", "tool": ACTIVITY_APPLY_LABELS},
        _write("bug", name="unknown"),
        _write(None, ["bug"], {}),
        {"kind": "call_tool", "tool": {"name": ACTIVITY_APPLY_LABELS, "arguments": []}},
    ],
    ids=str,
)
def test_what_is_no_decision_is_left_to_the_loop(decision: JsonValue) -> None:
    """A wrong shape is refused where every model's is."""
    assert decision == _on("add", decision)


@pytest.mark.parametrize("outcome", [o for o in DecideOutcome if o is not DecideOutcome.DECISION])
def test_an_outcome_that_is_no_decision_stays(outcome: DecideOutcome) -> None:
    """A model that gave no answer is not made to have given one."""
    given = DecideResult(outcome=outcome, detail="d", usage=USED)
    assert given is OPINION.on(model_request(issue("add", "text")), given)
