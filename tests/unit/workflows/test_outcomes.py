"""Endings: how a run's state becomes its one response."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.workflows.builders import some_evidence
from triage.contracts.base import MAX_REASON_CHARS
from triage.contracts.failures import FailureClass
from triage.contracts.intent import Proposal
from triage.contracts.response import Status
from workflows.outcomes import (
    Ending,
    conclude,
    failed,
    review,
    review_with_evidence,
    tool_fault,
)
from workflows.state import IllegalTransition, RunState

PROPOSAL = Proposal(
    route="bug", labels=("bug", "bug"), owner="backend-team", evidence_ids=("owners-api",)
)
FIELDS = [
    "run_id",
    "request_id",
    "status",
    "route",
    "labels",
    "owner",
    "evidence_ids",
    "failure",
    "reason",
    "tool_sequence",
    "retries",
    "steps",
]


def _deciding(*evidence_ids: str) -> RunState:
    return RunState(
        status=Status.DECIDING,
        version=5,
        steps=2,
        retries=1,
        tool_sequence=["lookup_component_owner", "lookup_component_owner"],
        evidence=[some_evidence(evidence_id) for evidence_id in evidence_ids],
    )


def test_a_failure_proposes_nothing() -> None:
    """A run that failed answers its class and a reason, with no route, owner or evidence."""
    ending = failed(FailureClass.UNKNOWN_TOOL, "not registered")
    assert Ending(Status.FAILED, "not registered", FailureClass.UNKNOWN_TOOL, Proposal()) == ending


def test_a_review_keeps_its_proposal() -> None:
    """A run that a person must decide on keeps what was proposed."""
    ending = review(None, "for a person", PROPOSAL)
    assert Ending(Status.REVIEW_REQUIRED, "for a person", None, PROPOSAL) == ending
    assert review(FailureClass.POLICY_BLOCK, "no").proposal == Proposal()


@pytest.mark.parametrize("failure", [FailureClass.TOOL_ERROR, FailureClass.TOOL_TIMEOUT])
def test_a_tool_fault_without_evidence_is_a_failure(failure: FailureClass) -> None:
    """With nothing to show, a failed read fails the run."""
    assert failed(failure, "broke") == tool_fault(_deciding(), failure, "broke", PROPOSAL)


@pytest.mark.parametrize("failure", [FailureClass.TOOL_ERROR, FailureClass.TOOL_TIMEOUT])
def test_a_tool_fault_after_evidence_goes_to_review(failure: FailureClass) -> None:
    """Partial success is never flattened: the evidence so far is kept, each id once, in order."""
    ending = tool_fault(_deciding("owners-ui", "owners-api", "owners-ui"), failure, "broke")
    assert (Status.REVIEW_REQUIRED, failure) == (ending.status, ending.failure)
    assert Proposal(evidence_ids=("owners-ui", "owners-api")) == ending.proposal


def test_partial_evidence_joins_the_proposal() -> None:
    """What was proposed before the fault stays beside all the evidence."""
    ending = tool_fault(
        _deciding("owners-api", "policy-feature"), FailureClass.TOOL_ERROR, "broke", PROPOSAL
    )
    assert replace(PROPOSAL, evidence_ids=("owners-api", "policy-feature")) == ending.proposal


def test_a_spent_budget_keeps_the_evidence() -> None:
    """A run that ran out goes to review with what it has, be it nothing."""
    for evidence in ((), ("owners-api",)):
        ending = review_with_evidence(_deciding(*evidence), FailureClass.BUDGET_EXCEEDED, "spent")
        assert (Status.REVIEW_REQUIRED, evidence) == (ending.status, ending.proposal.evidence_ids)


def test_a_response_is_the_twelve_fields_of_the_run() -> None:
    """The response repeats the state's counters and the ending's proposal, and nothing more."""
    state = _deciding("owners-api")
    response = conclude(state, "ISSUE-1", Ending(Status.COMPLETED, "because", None, PROPOSAL))
    plain = response.model_dump(mode="json", exclude_unset=True)
    assert FIELDS == list(plain)
    assert {
        "run_id": "run-ISSUE-1",
        "request_id": "ISSUE-1",
        "status": "completed",
        "route": "bug",
        "labels": ["bug", "bug"],
        "owner": "backend-team",
        "evidence_ids": ["owners-api"],
        "failure": None,
        "reason": "because",
        "tool_sequence": ["lookup_component_owner", "lookup_component_owner"],
        "retries": 1,
        "steps": 2,
    } == plain


@pytest.mark.parametrize(
    "ending",
    [
        Ending(Status.COMPLETED, "because", None, PROPOSAL),
        review(FailureClass.MODEL_TIMEOUT, "slow"),
        failed(FailureClass.MAX_STEPS_EXCEEDED, "steps"),
    ],
)
def test_an_ending_is_one_move_and_is_kept(ending: Ending) -> None:
    """Ending costs one version, and the state keeps the response that was given."""
    state = _deciding("owners-api")
    response = conclude(state, "ISSUE-1", ending)
    assert (ending.status, 6, True) == (state.status, state.version, state.is_terminal)
    assert response is state.response
    assert (ending.failure, ending.status) == (response.failure, response.status)


def test_invalid_input_ends_at_version_one() -> None:
    """A run that never began answers at version one with no step spent."""
    state = RunState()
    response = conclude(state, "invalid", failed(FailureClass.INVALID_INPUT, "not an object"))
    assert (1, 0, "run-invalid") == (state.version, response.steps, response.run_id)


def test_an_ended_run_cannot_end_again() -> None:
    """The first response stands."""
    state = _deciding()
    first = conclude(state, "ISSUE-1", review(None, "first"))
    with pytest.raises(IllegalTransition):
        conclude(state, "ISSUE-1", failed(FailureClass.TOOL_ERROR, "second"))
    assert first is state.response


@pytest.mark.parametrize("status", [Status.RECEIVED, Status.VALIDATED, Status.TOOL_COMPLETE])
def test_nothing_completes_from_outside_deciding(status: Status) -> None:
    """An ending that the table does not list is refused, and no response appears."""
    state = RunState(status=status)
    with pytest.raises(IllegalTransition):
        conclude(state, "ISSUE-1", Ending(Status.COMPLETED, "because"))
    assert state.response is None


@pytest.mark.parametrize(
    ("size", "kept"),
    [(0, 0), (MAX_REASON_CHARS, MAX_REASON_CHARS), (MAX_REASON_CHARS + 1, MAX_REASON_CHARS)],
)
def test_a_reason_is_clamped(size: int, kept: int) -> None:
    """A model's long reason is cut to the limit and marked as cut."""
    response = conclude(_deciding(), "ISSUE-1", review(None, "x" * size))
    assert kept == len(response.reason)
    assert (size > kept) is response.reason.endswith("…")
    assert response.reason.rstrip("…") == "x" * (kept - (size > kept))
