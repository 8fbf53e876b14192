"""Checks what people are told of a run's response."""

from __future__ import annotations

import pytest

from triage.cli.following import BY_HAND, response_lines
from triage.contracts.failures import LABEL_REMOVED, FailureClass
from triage.contracts.response import Status, TriageResponse
from triage.policy.security import SECURITY_ROUTE

CONTINUE = "continue    once that is settled: triage resume 'a run'"


def _response(failure: FailureClass | None, reason: str) -> TriageResponse:
    return TriageResponse(
        run_id="1",
        request_id="R-1",
        status=Status.REVIEW_REQUIRED,
        route=None,
        labels=(),
        owner=None,
        evidence_ids=(),
        failure=failure,
        reason=reason,
        tool_sequence=(),
        retries=0,
        steps=2,
    )


@pytest.mark.parametrize("failure", [None, *FailureClass])
def test_a_run_that_can_go_on_says_how(failure: FailureClass | None) -> None:
    """Whose write was stopped or not decided, or who has no step left, learns the command."""
    expected = failure in {
        FailureClass.POLICY_BLOCK,
        FailureClass.APPROVAL_REQUIRED,
        FailureClass.MAX_STEPS_EXCEEDED,
    }
    response = _response(failure, "writes are stopped")
    assert expected == (CONTINUE in response_lines(response, "a run"))


def test_where_a_label_was_taken_off_no_run_is_offered() -> None:
    """Another run would end the same way, so what helps is named, and `triage undo` with it."""
    lines = response_lines(_response(FailureClass.POLICY_BLOCK, LABEL_REMOVED), "a run")
    assert f"continue    {BY_HAND}" in lines
    assert not any("triage resume" in line for line in lines)
    assert any("'triage undo'" in line for line in lines)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "bug (the model's guess)"),
        ({"route": None}, "-"),
        ({"route": SECURITY_ROUTE}, SECURITY_ROUTE),
        ({"evidence_ids": ("owners-api",)}, "bug"),
        ({"failure": FailureClass.FINAL_OUTPUT_INVALID}, "bug"),
        ({"status": Status.COMPLETED}, "bug"),
    ],
    ids=["a review", "no route", "security", "evidence", "a failure", "completed"],
)
def test_a_route_that_rests_on_nothing_is_called_a_guess(
    changes: dict[str, object], shown: str
) -> None:
    """A model that hands over must name a route, even where no words say clearly what this is."""
    response = _response(None, "no words say clearly what this is")
    lines = response_lines(response.model_copy(update={"route": "bug"} | changes), "a run")
    assert f"route       {shown}" in lines
