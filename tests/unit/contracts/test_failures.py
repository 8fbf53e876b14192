"""The failure classes, their groups and owners, and the shape of a response."""

from __future__ import annotations

import pytest
from pydantic import JsonValue, ValidationError

from triage.contracts.failures import FAILURES, FailureClass, FailureGroup
from triage.contracts.response import Status, TriageResponse

GROUPS = {
    FailureGroup.INPUT_AND_CONTRACT: {
        "invalid_input",
        "model_invalid_output",
        "final_output_invalid",
    },
    FailureGroup.TOOL_AND_POLICY: {
        "unknown_tool",
        "invalid_tool_arguments",
        "tool_timeout",
        "tool_error",
        "policy_block",
        "approval_required",
    },
    FailureGroup.ORCHESTRATION_AND_STATE: {
        "model_timeout",
        "state_conflict",
        "max_steps_exceeded",
        "budget_exceeded",
    },
}
RESPONSE: dict[str, JsonValue] = {
    "run_id": "run-ISSUE-1",
    "request_id": "ISSUE-1",
    "status": "completed",
    "route": None,
    "labels": ["bug"],
    "owner": None,
    "evidence_ids": ["owners-api"],
    "failure": None,
    "reason": "because",
    "tool_sequence": ["lookup_component_owner"],
    "retries": 0,
    "steps": 2,
}


def test_the_twelve_classes_keep_their_names_and_one_is_added() -> None:
    """The source's class names are public; `budget_exceeded` is the one addition."""
    names = set.union(*GROUPS.values())
    assert names == {failure.value for failure in FailureClass}
    assert 13 == len(names)


def test_every_failure_has_its_group() -> None:
    """Each class stands in exactly one of the three groups."""
    actual = {
        group: {failure.value for failure, info in FAILURES.items() if info.group is group}
        for group in FailureGroup
    }
    assert GROUPS == actual
    assert [
        "input and contract",
        "tool and policy",
        "orchestration and state",
    ] == [group.value for group in FailureGroup]


@pytest.mark.parametrize("failure", FailureClass)
def test_every_failure_says_who_fixes_it_and_how(failure: FailureClass) -> None:
    """A reader of any failed run finds an owner and a first thing to do, in one line."""
    info = FAILURES[failure]
    for text in (info.owner, info.next_step):
        assert text == text.strip()
        assert text
        assert "\n" not in text


def test_statuses_keep_their_names() -> None:
    """The source's eight statuses are public."""
    assert [
        "received",
        "validated",
        "deciding",
        "tool_pending",
        "tool_complete",
        "review_required",
        "completed",
        "failed",
    ] == [status.value for status in Status]


def test_a_response_has_exactly_twelve_fields() -> None:
    """A response is the source's twelve fields, in plain JSON."""
    response = TriageResponse.model_validate_json(
        TriageResponse.model_validate(RESPONSE, strict=False).model_dump_json()
    )
    assert RESPONSE == response.model_dump(mode="json")
    assert 12 == len(RESPONSE)


@pytest.mark.parametrize("name", RESPONSE)
def test_no_field_of_a_response_may_be_missing(name: str) -> None:
    """A response without one of its fields is not a response."""
    value = {field: item for field, item in RESPONSE.items() if field != name}
    with pytest.raises(ValidationError, match="Field required"):
        TriageResponse.model_validate(value, strict=False)


def test_a_response_has_no_other_field() -> None:
    """A thirteenth field is refused."""
    with pytest.raises(ValidationError, match="Extra inputs"):
        TriageResponse.model_validate({**RESPONSE, "version": 3}, strict=False)
