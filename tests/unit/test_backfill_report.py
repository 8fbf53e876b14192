"""What a backfill counts: proposals beside people's labels, and what is neither."""

from __future__ import annotations

from typing import Any

import pytest

from triage.ingest.backfill_report import ABSTAINED, FAILED, NONE, LabelCount, report_of

KNOWN = ("bug", "docs", "component:api")


def _row(people: list[str], labels: list[str], status: str = "completed", **more: Any) -> Any:  # noqa: ANN401 - a row
    usual = {"route": None, "failure": None, "policy": "", "tokens": 1, "cost_micros": 2}
    return {**usual, "people": people, "labels": labels, "status": status, **more}


@pytest.mark.parametrize(
    ("people", "labels", "status", "expected"),
    [
        (["bug"], ["bug"], "completed", {("bug", "bug"): 1}),
        (["Bug", "wontfix"], ["bug"], "completed", {("bug", "bug"): 1}),
        (["docs"], ["bug"], "completed", {("docs", "bug"): 1}),
        (["bug", "docs"], ["bug"], "completed", {("bug", "bug"): 1, ("docs", NONE): 1}),
        (["bug"], ["bug", "docs"], "completed", {("bug", "bug"): 1, (NONE, "docs"): 1}),
        ([], [], "completed", {(NONE, NONE): 1}),
        (["wontfix"], [], "completed", {(NONE, NONE): 1}),
        (["bug"], ["bug"], "review_required", {("bug", ABSTAINED): 1}),
        ([], [], "failed", {(NONE, FAILED): 1}),
    ],
)
def test_people_and_proposals_are_compared_label_by_label(
    people: list[str], labels: list[str], status: str, expected: dict[tuple[str, str], int]
) -> None:
    """Equal labels meet each other; what is left stands against what is left, or against none."""
    assert expected == report_of([_row(people, labels, status)], KNOWN).confusion


def test_the_totals_are_those_of_all_issues() -> None:
    """Answers, abstentions and failures add up to the issues, and cost to the whole."""
    rows = [
        _row(["bug"], ["bug"]),
        _row(["bug"], ["docs"]),
        _row(["bug"], [], "review_required", failure="approval_required"),
        _row([], [], "failed", failure="model_timeout"),
    ]
    report = report_of(rows, KNOWN)
    assert (4, 2, 1, 1) == (report.issues, report.answered, report.abstained, report.failed)
    assert {"approval_required": 1, "model_timeout": 1} == report.failures
    assert (4, 8) == (report.tokens, report.cost_micros)
    expected = LabelCount(label="bug", both=1, only_proposed=0, only_people=2)
    assert expected == report.labels[0]
    assert 4 == sum(pair["count"] for pair in report.to_json()["confusion"])  # type: ignore[union-attr,call-overload,misc,index] # JSON of our own
