"""The contracts of the evidence loop: what may be investigated, and one decision."""

from __future__ import annotations

import pytest
from hypothesis import given
from pydantic import JsonValue

from tests.unit.contracts.strategies import JSON_VALUES, PROPERTY, near_objects, short
from triage.contracts.base import MAX_NAME_CHARS, ContractError
from triage.contracts.incident import (
    MAX_LIMIT,
    LoopDecision,
    LoopStatus,
    parse_incident,
    parse_loop_decision,
)

VALID: dict[str, JsonValue] = {
    "incident_id": "INC-1",
    "limit": 3,
    "evidence": {"latency": {"p95_ms": 840}, "log": None},
}
BAD: dict[str, list[JsonValue]] = {
    "incident_id": [None, True, 1, "", [], "x" * (MAX_NAME_CHARS + 1)],
    "limit": [None, True, False, 0, -1, MAX_LIMIT + 1, 3.0, "3", [], 10**400],
    "evidence": [None, True, [], "latency", {"": 1}, {"x" * (MAX_NAME_CHARS + 1): 1}],
    "decisions": [True, {}, "finish", 1],
}
READ: dict[str, JsonValue] = {"action": "read", "argument": "latency"}


@pytest.mark.parametrize("limit", [1, MAX_LIMIT])
def test_limit_is_from_one_to_a_hundred(limit: int) -> None:
    """The smallest and the largest limit are taken."""
    assert limit == parse_incident({**VALID, "limit": limit}).limit


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD.items() for value in values],
    ids=short,
)
def test_wrong_values_are_refused(name: str, value: JsonValue) -> None:
    """A boolean is no limit, a list no evidence, and the field is named."""
    with pytest.raises(ContractError, match=rf"^incident\.{name}"):
        parse_incident({**VALID, name: value})


@pytest.mark.parametrize("name", VALID)
def test_each_field_is_required(name: str) -> None:
    """An incident without its id, limit or evidence is refused."""
    value = {field: item for field, item in VALID.items() if field != name}
    with pytest.raises(ContractError, match=rf"^incident\.{name}: is missing$"):
        parse_incident(value)


@pytest.mark.parametrize("value", [None, True, 1, "", [], [VALID]])
def test_only_an_object_is_an_incident(value: JsonValue) -> None:
    """Anything but a JSON object is refused."""
    with pytest.raises(ContractError, match=r"^incident must be a JSON object$"):
        parse_incident(value)


def test_decisions_may_be_anything() -> None:
    """Recorded decisions are kept as they are: what is wrong with one is the loop's to say."""
    decisions: list[JsonValue] = [READ, {"error": "boom"}, None, [1], "finish"]
    assert tuple(decisions) == parse_incident({**VALID, "decisions": decisions}).decisions
    assert parse_incident(VALID).decisions is None
    assert parse_incident({**VALID, "decisions": []}).decisions == ()


def test_no_other_field_is_allowed() -> None:
    """A misspelt field is refused, not ignored."""
    with pytest.raises(ContractError, match="unexpected field"):
        parse_incident({**VALID, "decision": []})


@pytest.mark.parametrize(
    "value",
    [
        READ,
        {"action": "finish", "argument": None},
        {"action": "", "argument": ""},
        {"action": "delete", "argument": "everything"},
    ],
)
def test_a_loop_decision_has_an_action_and_an_argument(value: dict[str, JsonValue]) -> None:
    """Any text is an action: whether it is permitted is the loop's to say."""
    assert LoopDecision.model_validate(value) == parse_loop_decision(value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "finish",
        [],
        ["read", "latency"],
        {},
        {"action": "finish"},
        {"argument": "latency"},
        {**READ, "extra": 1},
        {"action": None, "argument": None},
        {"action": 1, "argument": "latency"},
        {"action": "read", "argument": 1},
        {"action": "read", "argument": ["latency"]},
        {"error": "boom"},
        float("nan"),
        {"action": "read", "argument": float("inf")},
    ],
    ids=short,
)
def test_anything_else_is_no_decision(value: JsonValue) -> None:
    """What is not exactly a decision is None, and never an exception."""
    assert parse_loop_decision(value) is None


def test_nesting_beyond_reading_is_no_decision() -> None:
    """A value nested a thousand levels deep is None too."""
    value: JsonValue = "latency"
    for _ in range(1_000):
        value = [value]
    assert parse_loop_decision({"action": "read", "argument": value}) is None


@PROPERTY
@given(near_objects({"action": JSON_VALUES, "argument": JSON_VALUES}))
def test_a_decision_is_two_texts_or_nothing(value: dict[str, JsonValue]) -> None:
    """On random values, exactly an action text with an argument text or null is a decision."""
    expected = (
        set(value) == {"action", "argument"}
        and isinstance(value["action"], str)
        and isinstance(value["argument"], str | None)
    )
    assert expected is (parse_loop_decision(value) is not None)


def test_statuses_keep_their_names() -> None:
    """The seven statuses are public."""
    assert [
        "complete",
        "unsupported",
        "denied",
        "repeated",
        "exhausted",
        "invalid",
        "adapter_error",
    ] == [status.value for status in LoopStatus]
