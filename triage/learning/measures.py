"""How good answers are: agreement per label, and accuracy against how many are answered. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

STEPS: Final = 20
"""The curve has as many points: each takes in a further twentieth of the issues."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said of one issue, and what it is.

    Attributes:
        truth: the label that people gave.
        said: the most likely label.
        sure: how likely, from 0 to 1.
        group: where the issue comes from; may be empty.
    """

    truth: str
    said: str
    sure: float
    group: str = ""


@dataclass(frozen=True, slots=True)
class LabelScore:
    """How one label fares; a figure without anything to count is 0."""

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """What comes of answering only what is at least this likely.

    Attributes:
        threshold: answered is what is as likely or likelier.
        coverage: the part of all issues that is answered.
        accuracy: the part of the answered ones that is right; 1 where nothing is answered.
    """

    threshold: float
    coverage: float
    accuracy: float


def label_scores(answers: Sequence[Answer], labels: Sequence[str]) -> dict[str, LabelScore]:
    """Return the score of each label, every issue answered."""
    said = Counter(answer.said for answer in answers)
    true = Counter(answer.truth for answer in answers)
    right = Counter(answer.said for answer in answers if answer.said == answer.truth)
    return {
        label: LabelScore(
            precision=_part(right[label], said[label]),
            recall=_part(right[label], true[label]),
            f1=_part(2 * right[label], said[label] + true[label]),
            support=true[label],
        )
        for label in labels
    }


def macro_f1(answers: Sequence[Answer], labels: Sequence[str]) -> float:
    """Return the mean of the F1 of the labels that occur, in truth or in answers."""
    occurring = {a.truth for a in answers} | {a.said for a in answers}
    scores = label_scores(answers, [label for label in labels if label in occurring])
    return _part(sum(score.f1 for score in scores.values()), len(scores))


def accuracy(answers: Sequence[Answer]) -> float:
    """Return the part that is right; 1 of no answers at all."""
    right = sum(answer.said == answer.truth for answer in answers)
    return right / len(answers) if answers else 1.0


def confusion(answers: Sequence[Answer], labels: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return how often an issue of one label (outer) was said to be of another (inner)."""
    counts = Counter((answer.truth, answer.said) for answer in answers)
    return {true: {said: counts[true, said] for said in labels} for true in labels}


def answered(answers: Sequence[Answer], threshold: float | None) -> list[Answer]:
    """Return what is answered at a threshold; without one, nothing is."""
    return [a for a in answers if threshold is not None and a.sure >= threshold]


def point(answers: Sequence[Answer], threshold: float | None) -> CoveragePoint:
    """Return what comes of a threshold; without one, which is above all, nothing is answered."""
    kept = answered(answers, threshold)
    coverage = _part(len(kept), len(answers))
    return CoveragePoint(1.0 if threshold is None else threshold, coverage, accuracy(kept))


def coverage_curve(answers: Sequence[Answer]) -> list[CoveragePoint]:
    """Return points from all answered (threshold 0) to a twentieth, by rising threshold."""
    by_sureness = sorted((answer.sure for answer in answers), reverse=True)
    wanted = (-(-len(answers) * step // STEPS) for step in range(STEPS - 1, 0, -1))
    thresholds = {by_sureness[max(count, 1) - 1] for count in wanted} if answers else set()
    return [point(answers, threshold) for threshold in sorted({0.0, *thresholds})]


def threshold_for(answers: Sequence[Answer], target: float) -> float | None:
    """Return the threshold that answers most and still is right in `target` of what it answers.

    Returns:
        None where no threshold is, so that nothing is to be answered.
    """
    ordered = sorted(answers, key=lambda answer: -answer.sure)
    best = None
    right = 0
    for count, answer in enumerate(ordered, start=1):
        right += answer.said == answer.truth
        ends = count == len(ordered) or ordered[count].sure < answer.sure
        if ends and right >= target * count:
            best = answer.sure
    return best


def _part(count: float, of: float) -> float:
    return count / of if of else 0.0
