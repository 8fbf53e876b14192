"""Grading responses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evaluation.cases import EXPECTED, RESPONSE, case, fixture
from triage.evaluation.fixture import parse_fixture
from triage.evaluation.grader import grade


def _grade(
    actual: dict[str, Any], expected: dict[str, Any] | None = None, **options: object
) -> list[str]:
    given = case(expected={**EXPECTED, **(expected or {})}, options=options)
    return grade(parse_fixture(fixture(given)).cases[0], actual)


def test_a_response_as_expected_has_no_failures() -> None:
    """What matches in all five fields and keeps the contract passes."""
    assert [] == _grade(RESPONSE)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("status", "failed", "status: expected 'failed', got 'completed'"),
        ("route", None, "route: expected None, got 'bug'"),
        ("failure", "tool_error", "failure: expected 'tool_error', got None"),
        ("tool_sequence", [], "tool_sequence: expected [], got ['lookup_component_owner']"),
        ("retries", 1, "retries: expected 1, got 0"),
    ],
)
def test_each_graded_field_is_compared(name: str, value: object, shown: str) -> None:
    """A difference names the field, what was expected and what came."""
    assert [shown] == _grade(RESPONSE, {name: value})


def test_ungraded_fields_are_free() -> None:
    """Reason, owner and labels are not part of what a case expects."""
    other = {"reason": "else", "owner": "docs-team", "labels": []}
    assert [] == _grade({**RESPONSE, **other})


@pytest.mark.parametrize("name", list(RESPONSE))
def test_a_missing_field_breaks_the_contract(name: str) -> None:
    """A response has exactly twelve fields: one less is no response."""
    actual = {key: value for key, value in RESPONSE.items() if key != name}
    assert ["the response does not have exactly the twelve fields of the contract"] == _grade(
        actual
    )


def test_an_extra_field_breaks_the_contract() -> None:
    """One field too many is no response either."""
    assert 1 == len(_grade({**RESPONSE, "confidence": 0.9}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run_id", None),
        ("request_id", 1),
        ("status", "done"),
        ("route", 1),
        ("labels", "bug"),
        ("labels", [1]),
        ("owner", []),
        ("evidence_ids", None),
        ("failure", "unheard_of"),
        ("reason", None),
        ("tool_sequence", [None]),
        ("retries", True),
        ("steps", "2"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(name: str, value: object) -> None:
    """Every field is held to its type before anything else is looked at."""
    [failure] = _grade({**RESPONSE, name: value})
    assert failure.startswith(f"response.{name}")


def test_a_run_that_is_not_over_fails() -> None:
    """Only a terminal status is an outcome."""
    assert "the status is not a terminal one" in _grade({**RESPONSE, "status": "deciding"})


def test_the_step_cap_is_the_cases_own() -> None:
    """A case that permits five steps is held to five, and any other to three."""
    assert [] == _grade({**RESPONSE, "steps": 5}, max_steps=5)
    assert ["more than the permitted 3 steps were taken"] == _grade({**RESPONSE, "steps": 4})


def test_an_unregistered_tool_must_end_as_unknown() -> None:
    """A tool that is not registered may be named, and then the run is over."""
    tools = ["delete_repository"]
    ended: dict[str, Any] = {
        "status": "failed",
        "route": None,
        "tool_sequence": tools,
        "failure": "unknown_tool",
    }
    assert [] == _grade({**RESPONSE, **ended, "evidence_ids": []}, ended)
    [failure] = _grade({**RESPONSE, "tool_sequence": tools}, {"tool_sequence": tools})
    assert "unregistered tool" in failure


def test_evidence_of_no_tool_is_found() -> None:
    """Citing what no tool can return is a fault, whatever else matches."""
    [failure] = _grade({**RESPONSE, "evidence_ids": ["owners-api", "made-up"]})
    assert "evidence is cited" in failure


def test_a_receipt_is_evidence() -> None:
    """The receipt of a write may be cited."""
    assert [] == _grade({**RESPONSE, "evidence_ids": ["mutation-receipt"]})


def test_completion_needs_evidence() -> None:
    """A completed run without evidence is never taken for a success."""
    assert ["the run completed without evidence"] == _grade({**RESPONSE, "evidence_ids": []})
