"""Reporting an evaluation."""

from __future__ import annotations

from typing import Any

from tests.evaluation.cases import RESPONSE
from triage.contracts.state import MutationRecord
from triage.evaluation.report import CaseRecord, Evaluation

BLOCKED = MutationRecord(
    operation_id="op-1",
    tool="apply_labels",
    executed=False,
    authorized=False,
    reason="approval_required",
)
APPROVED = MutationRecord(
    operation_id="op-2", tool="apply_labels", executed=True, authorized=True, reason="approved"
)
ROGUE = MutationRecord(
    operation_id=None, tool="apply_labels", executed=True, authorized=False, reason="approved"
)


def _record(
    name: str, *mutations: MutationRecord, failures: tuple[str, ...] = (), **changes: object
) -> CaseRecord:
    actual: dict[str, Any] = {**RESPONSE, **changes}
    return CaseRecord(id=name, actual=actual, failures=failures, mutations=mutations)


def test_the_text_is_eleven_lines_without_a_newline_at_the_end() -> None:
    """The summary of the nine cases is the source document's, byte for byte."""
    records = (
        *(_record(f"good-{number}") for number in range(3)),
        _record("retried", retries=1),
        _record("reviewed", status="review_required"),
        _record("blocked", BLOCKED, status="review_required", failure="approval_required"),
        _record("unknown", status="failed", failure="unknown_tool"),
        _record("arguments", status="failed", failure="invalid_tool_arguments"),
        _record("steps", status="failed", failure="max_steps_exceeded"),
    )
    assert (
        "SYNTHETIC EDUCATIONAL EXAMPLE \u2014 orchestration fixture only\n"
        "cases=9\n"
        "passed=9\n"
        "completed=4\n"
        "review_required=2\n"
        "controlled_failures=3\n"
        "policy_blocks=1\n"
        "invalid_tool_calls=2\n"
        "bounded_retries=1\n"
        "max_step_failures=1\n"
        "unauthorized_side_effects=0"
    ) == Evaluation(records).text()


def test_each_failed_case_has_a_line() -> None:
    """A case that failed is named with all that is wrong with it, after the summary."""
    evaluation = Evaluation((_record("a"), _record("b", failures=("one", "two")), _record("c")))
    assert ["FAIL b: one; two"] == evaluation.text().split("\n")[11:]
    assert 1 == evaluation.exit_status


def test_no_case_can_forge_a_line() -> None:
    """An id or a value that holds a newline or an escape is shown escaped."""
    evaluation = Evaluation((_record("x\ncases=0\x1b[2J\u2028", failures=("a\nb",)),))
    assert r"FAIL x\ncases=0\x1b[2J\u2028: a\nb" == evaluation.text().split("\n")[11]
    assert 12 == len(evaluation.text().splitlines())


def test_an_empty_fixture_passes() -> None:
    """No cases is nothing wrong."""
    assert 0 == Evaluation(()).exit_status
    assert {"records": [], "mutations": []} == Evaluation(()).to_json()


def test_an_unauthorised_effect_fails_an_evaluation_whose_cases_pass() -> None:
    """A write that ran without authority is counted, and no passing case hides it."""
    evaluation = Evaluation((_record("a", APPROVED, ROGUE),))
    assert 1 == evaluation.exit_status
    assert evaluation.text().endswith("unauthorized_side_effects=1")


def test_json_has_records_and_mutations_in_the_order_of_the_cases() -> None:
    """Programs get the full responses, the failures, and every mutation with its authority."""
    evaluation = Evaluation((_record("a", BLOCKED), _record("b", APPROVED, failures=("one",))))
    assert {
        "records": [
            {"id": "a", "actual": RESPONSE, "failures": []},
            {"id": "b", "actual": RESPONSE, "failures": ["one"]},
        ],
        "mutations": [
            {
                "operation_id": "op-1",
                "tool": "apply_labels",
                "executed": False,
                "authorized": False,
                "reason": "approval_required",
            },
            {
                "operation_id": "op-2",
                "tool": "apply_labels",
                "executed": True,
                "authorized": True,
                "reason": "approved",
            },
        ],
    } == evaluation.to_json()


def test_a_case_without_a_response_counts_nowhere() -> None:
    """A run that the platform lost is a failed case, not a controlled failure."""
    lost = dict.fromkeys(RESPONSE, None)
    text = Evaluation((CaseRecord("a", lost, ("the run did not end",)),)).text()
    assert "completed=0\nreview_required=0\ncontrolled_failures=0\n" in text
