"""Promises of the measures: the textbook figures, and an honest curve."""

from __future__ import annotations

import pytest

from triage.learning.measures import (
    Answer,
    CoveragePoint,
    LabelScore,
    confusion,
    coverage_curve,
    label_scores,
    macro_f1,
    point,
    threshold_for,
)

LABELS = ("a", "b", "c")
ANSWERS = [
    Answer("a", "a", 0.9),
    Answer("a", "a", 0.8),
    Answer("a", "b", 0.6),
    Answer("b", "b", 0.7),
    Answer("b", "a", 0.5),
]


def test_a_label_has_precision_recall_and_f1() -> None:
    """Of three said to be a two are; of three that are a two are said to be; c never occurs."""
    scores = label_scores(ANSWERS, LABELS)
    assert LabelScore(2 / 3, 2 / 3, 2 / 3, 3) == scores["a"]
    assert LabelScore(1 / 2, 1 / 2, 1 / 2, 2) == scores["b"]
    assert LabelScore(0, 0, 0, 0) == scores["c"]


def test_macro_f1_is_the_mean_of_the_labels_that_occur() -> None:
    """A label that is neither true nor said of any issue does not count."""
    assert pytest.approx((2 / 3 + 1 / 2) / 2) == macro_f1(ANSWERS, LABELS)
    assert pytest.approx(1 / 3) == macro_f1([Answer("a", "a", 1), Answer("b", "c", 1)], LABELS)


def test_the_confusion_table_counts_pairs() -> None:
    """The outer label is the truth."""
    table = confusion(ANSWERS, LABELS)
    assert {"a": 2, "b": 1, "c": 0} == table["a"]
    assert {"a": 1, "b": 1, "c": 0} == table["b"]


def test_the_curve_goes_from_all_to_few_by_rising_threshold() -> None:
    """Each point says what comes of its own threshold, and all issues are answered at 0."""
    curve = coverage_curve(ANSWERS)
    assert CoveragePoint(0.0, 1.0, 3 / 5) == curve[0]
    assert CoveragePoint(0.9, 1 / 5, 1.0) == curve[-1]
    assert [p.threshold for p in curve] == sorted(p.threshold for p in curve)
    assert curve == [point(ANSWERS, p.threshold) for p in curve]
    assert [] != coverage_curve([]) == [CoveragePoint(0.0, 0.0, 1.0)]


def test_half_of_the_issues_is_a_point_of_the_curve() -> None:
    """Who asks for accuracy at half coverage finds it."""
    answers = [Answer("a", "a", n / 100) for n in range(100)]
    assert 0.5 in {p.coverage for p in coverage_curve(answers)}


@pytest.mark.parametrize(
    ("target", "threshold"), [(1.0, 0.7), (0.75, 0.6), (0.7, 0.6), (0.6, 0.5), (0.0, 0.5)]
)
def test_the_threshold_answers_most_of_what_reaches_the_target(
    target: float, threshold: float
) -> None:
    """The lowest threshold at which so many of the answers are right."""
    assert threshold == threshold_for(ANSWERS, target)


def test_equal_chances_stand_on_one_side_of_a_threshold() -> None:
    """A threshold cannot tell apart what is equally likely; where none is good enough, none is."""
    tied = [Answer("a", "a", 0.9), Answer("a", "b", 0.9)]
    assert threshold_for(tied, 0.9) is None
    assert CoveragePoint(1.0, 0.0, 1.0) == point(tied, None)
