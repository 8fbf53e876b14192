"""Checks what people are told of a run's response."""

from __future__ import annotations

import pytest

from triage.cli.following import response_lines
from triage.contracts.failures import FailureClass
from triage.contracts.response import Status, TriageResponse

CONTINUE = "continue    once that is settled: triage resume 'a run'"


@pytest.mark.parametrize("failure", [None, *FailureClass])
def test_a_run_that_can_go_on_says_how(failure: FailureClass | None) -> None:
    """Whose write was stopped, rejected or not decided in time learns the command to continue."""
    response = TriageResponse(
        run_id="1",
        request_id="R-1",
        status=Status.REVIEW_REQUIRED,
        route=None,
        labels=(),
        owner=None,
        evidence_ids=(),
        failure=failure,
        reason="writes are stopped",
        tool_sequence=(),
        retries=0,
        steps=2,
    )
    expected = failure in {FailureClass.POLICY_BLOCK, FailureClass.APPROVAL_REQUIRED}
    assert expected == (CONTINUE in response_lines(response, "a run"))
