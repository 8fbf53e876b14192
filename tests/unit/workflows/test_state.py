"""The finite state machine: every move, its version, and what the state keeps."""

from __future__ import annotations

import copy
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.contracts.strategies import PROPERTY
from tests.unit.workflows.builders import a_pending_view, some_evidence
from triage.contracts.response import Status
from triage.contracts.state import RefusalView, StateView
from workflows.state import MAX_REFUSALS_KEPT, IllegalTransition, RunState

# The design's table, spelt out once more.
LEGAL = {
    ("received", "validated"),
    ("received", "failed"),
    ("validated", "deciding"),
    ("validated", "failed"),
    ("deciding", "tool_pending"),
    ("deciding", "review_required"),
    ("deciding", "completed"),
    ("deciding", "failed"),
    ("tool_pending", "tool_complete"),
    ("tool_pending", "review_required"),
    ("tool_pending", "failed"),
    ("tool_complete", "deciding"),
    ("tool_complete", "failed"),
}
TERMINAL = {"review_required", "completed", "failed"}
PAIRS = [(source.value, target.value) for source, target in product(Status, Status)]


def _at(status: str, version: int = 7) -> RunState:
    return RunState(status=Status(status), version=version)


def _refusal(number: int) -> RefusalView:
    return RefusalView(
        code="expired", operation_id=f"op-{number}", version=number, approver="ann", at="2030"
    )


def test_a_run_begins_as_received_at_version_zero() -> None:
    """Nothing has happened before the first move."""
    state = RunState()
    assert (Status.RECEIVED, 0, False) == (state.status, state.version, state.is_terminal)


@pytest.mark.parametrize(("source", "target"), sorted(LEGAL))
def test_legal_moves_grow_the_version_by_one(source: str, target: str) -> None:
    """Every move of the table is made, and costs exactly one version."""
    state = _at(source)
    state.move(Status(target))
    assert (target, 8) == (state.status, state.version)


@pytest.mark.parametrize(("source", "target"), [pair for pair in PAIRS if pair not in LEGAL])
def test_illegal_moves_change_nothing(source: str, target: str) -> None:
    """A move outside the table is refused and leaves status and version as they were."""
    state = _at(source)
    before = copy.deepcopy(state)
    with pytest.raises(IllegalTransition, match=rf"^{source} -> {target}$"):
        state.move(Status(target))
    assert before == state


@pytest.mark.parametrize("status", [status.value for status in Status])
def test_terminal_statuses_are_the_last_three(status: str) -> None:
    """Exactly review_required, completed and failed end a run."""
    assert (status in TERMINAL) is _at(status).is_terminal


@pytest.mark.parametrize("source", [s.value for s in Status if s.value not in TERMINAL])
def test_an_edit_reopens_any_run_that_lives(source: str) -> None:
    """An edit leads back to validated from everywhere, at the cost of one version."""
    state = _at(source)
    state.steps, state.retries, state.tokens = 2, 1, 30
    state.reopen(("title",))
    assert ("validated", 8) == (state.status, state.version)
    assert (2, 1, 30) == (state.steps, state.retries, state.tokens)


@pytest.mark.parametrize("source", sorted(TERMINAL))
def test_an_edit_never_reopens_a_run_that_ended(source: str) -> None:
    """A terminal record never changes, not by an edit either."""
    state = _at(source)
    before = copy.deepcopy(state)
    with pytest.raises(IllegalTransition, match=rf"^{source} -> validated by an edit$"):
        state.reopen(("title",))
    assert before == state


def test_tools_are_pending_at_versions_three_six_and_nine() -> None:
    """A run of reads reaches tool_pending at the versions that approvals are written for."""
    state = RunState()
    state.move(Status.VALIDATED)
    pending_at = []
    for _ in range(3):
        state.move(Status.DECIDING)
        state.move(Status.TOOL_PENDING)
        pending_at.append(state.version)
        state.move(Status.TOOL_COMPLETE)
    assert [3, 6, 9] == pending_at


@PROPERTY
@given(st.lists(st.sampled_from((*Status, None)), max_size=40))
def test_the_version_counts_the_moves_that_were_made(walk: list[Status | None]) -> None:
    """Over any sequence of moves and edits, the version is the number that were legal."""
    state, made = RunState(), 0
    for target in walk:
        source = state.status
        legal = (
            source.value not in TERMINAL
            if target is None
            else (source.value, target.value) in LEGAL
        )
        try:
            if target is None:
                state.reopen(("title",))
            else:
                state.move(target)
        except IllegalTransition:
            assert not legal
            assert source is state.status
        else:
            made += 1
            assert legal
            assert (target or Status.VALIDATED) is state.status
        assert made == state.version


def test_refusals_are_bounded_but_counted() -> None:
    """The latest fifty refusals stay, in their order, and all are counted."""
    state = RunState()
    for number in range(MAX_REFUSALS_KEPT + 10):
        state.refuse(_refusal(number))
    assert MAX_REFUSALS_KEPT == 50
    assert [_refusal(number) for number in range(10, 60)] == state.refusals
    assert state.refusals_total == 60
    assert (0, Status.RECEIVED) == (state.version, state.status)


def test_only_returned_evidence_is_known() -> None:
    """What may be cited is what tools returned, each id once, however often it came."""
    state = RunState(evidence=[some_evidence("a", 10), some_evidence("b", 5)])
    state.evidence.append(some_evidence("a", 10))
    assert frozenset({"a", "b"}) == state.known_evidence()
    assert state.evidence_bytes == 25


def test_the_state_view_has_the_designs_fields() -> None:
    """The `state` query answers exactly the fields that people and programs read."""
    expected = (
        "status version steps retries tool_sequence decisions evidence pending refusals"
        " refusals_total operations spent provenance response model_faults verdicts trail"
    )
    assert expected.split() == list(StateView.model_fields)


def test_the_view_shows_the_state_as_it_is() -> None:
    """A view is a snapshot in plain JSON: evidence without facts or sizes, and what was spent."""
    state = RunState(tokens=3, cost_micros=4, seconds=5, evidence=[some_evidence("a", 10)])
    state.tool_sequence.append("lookup_component_owner")
    state.pending = a_pending_view()
    view = state.view()
    state.tool_sequence.append("later")
    plain = view.model_dump(mode="json")
    assert ["lookup_component_owner"] == plain["tool_sequence"]
    assert {"id", "tool", "source", "locator", "digest"} == set(plain["evidence"][0])
    assert {"tokens": 3, "cost_micros": 4, "seconds": 5, "evidence_bytes": 10} == plain["spent"]
    assert ("op-105", None) == (plain["pending"]["operation_id"], plain["response"])
    assert view == StateView.model_validate_json(view.model_dump_json())
