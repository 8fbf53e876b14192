"""From labelled issues to weights whose worth was measured on issues that they were not taught by.

Why it exists: what a classifier says of the issues it was taught by says nothing. Whether groups
get weights of their own, how chances are calibrated and from where on it abstains are all chosen by
cross-validation within the given issues; the issues of a test are looked at once, at the end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from triage.contracts.canonical import digest_of
from triage.contracts.field_names import shown_name
from triage.learning.measures import Answer, macro_f1, threshold_for
from triage.learning.rows import IssueRow, Rows, RowsError
from triage.learning.training import Example, teach
from triage.models.classifier import Classifier, chances_of, sums_of
from triage.models.learned_text import read_issue
from triage.models.learned_weights import Weights

FOLDS: Final = 5
MIN_PER_LABEL: Final = 5
MAX_SHOWN: Final = 5
"""As many labels are named."""

MIN_PER_GROUP: Final = 20
"""A group with fewer issues learns nothing of its own."""

SHARED: Final = "shared"
OWN: Final = "shared and own"
"""The two ways to learn from groups: all alike, or each with numbers of its own added."""

TEMPERATURES: Final = tuple(round(0.2 * 1.1**step, 4) for step in range(40))

Sums = list[float]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Learned:
    """Weights, and what they are worth.

    Attributes:
        weights: taught by all issues.
        answers: what was said of each issue by weights that were not taught by it.
        way: how groups were learned from.
        compared: the macro F1 of each way that was tried.
    """

    weights: Weights
    answers: tuple[Answer, ...]
    way: str
    compared: dict[str, float]


def learn_from(rows: Rows, target: float, progress: Progress) -> Learned:
    """Learn from labelled issues.

    Args:
        rows: at least `MIN_PER_LABEL` issues of each label, and two labels or more.
        target: the part of the answers that is to be right.
        progress: told how many of all steps are done.

    Raises:
        RowsError: these issues teach nothing.
        LearningUnavailable: the library that training needs is not installed.
    """
    _check(rows)
    ways = _ways(rows)
    steps = _Steps(progress, len(ways) * FOLDS + 1)
    sums = {way: _held_out(rows, examples, steps) for way, examples in ways.items()}
    compared = {
        way: macro_f1([*_answers(rows, found, 1.0)], rows.labels) for way, found in sums.items()
    }
    best = max(ways, key=lambda way: compared[way])
    taught = teach(ways[best], rows.labels)
    # What was shared out among groups lacks their part where none of them is known.
    alone = teach(ways[SHARED], rows.labels).shared if best == OWN else None
    steps.next()
    temperature = min(TEMPERATURES, key=lambda t: _surprise(rows, sums[best], t))
    answers = tuple(_answers(rows, sums[best], temperature))
    weights = Weights(
        format="bounded-triage-weights-1",
        text=1,
        labels=rows.labels,
        temperature=temperature,
        threshold=threshold_for(answers, target),
        target_accuracy=target,
        shared=taught.shared,
        groups=taught.groups,
        alone=alone,
        issues=len(rows.issues),
        data_digest=digest_of([[row.key, row.label] for row in rows.issues]),
    )
    return Learned(weights, answers, best, compared)


class _Steps:
    """Counts what is done."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def next(self) -> None:
        self._done += 1
        self._progress(self._done, self._total)


def _check(rows: Rows) -> None:
    counts = Counter(row.label for row in rows.issues)
    if len(counts) < 2:  # noqa: PLR2004 - one label teaches nothing
        raise RowsError("has issues of one label only: at least two are needed")
    few = sorted(label for label, count in counts.items() if count < MIN_PER_LABEL)
    if few:
        named = map(shown_name, few[:MAX_SHOWN])
        more = [f"and {len(few) - MAX_SHOWN} more"] if len(few) > MAX_SHOWN else []
        listed = ", ".join([*named, *more])
        raise RowsError(f"labels with fewer than {MIN_PER_LABEL} different issues: {listed}")


def _ways(rows: Rows) -> dict[str, list[Example]]:
    """Return what is learned from, in each of the ways that there are."""
    counts = Counter(row.group for row in rows.issues if row.group)
    large = {group for group, count in counts.items() if count >= MIN_PER_GROUP}
    alike = [Example(read_issue(row.title, row.body or ""), row.label, "") for row in rows.issues]
    if len(large) < 2:  # noqa: PLR2004 - a group alone shares with nobody
        return {SHARED: alike}
    own = [
        replace(example, group=row.group or "") if row.group in large else example
        for example, row in zip(alike, rows.issues, strict=True)
    ]
    return {SHARED: alike, OWN: own}


def _folds(issues: Sequence[IssueRow]) -> list[int]:
    """Return each issue's fold: labels and groups are spread evenly, and by content alone.

    Equal texts come into one fold, whatever their labels. What has fewer issues than there are
    folds is no kind of its own: the issues of many small groups would all come into the first one.
    """
    counts = Counter((row.label, row.group or "") for row in issues)
    fold_of: dict[str, int] = {}
    next_of: Counter[tuple[str, str]] = Counter()
    for row in issues:
        if row.key not in fold_of:
            kind = (row.label, row.group or "")
            kind = kind if counts[kind] >= FOLDS else (row.label, "")
            fold_of[row.key] = next_of[kind] % FOLDS
            next_of[kind] += 1
    return [fold_of[row.key] for row in issues]


def _held_out(rows: Rows, examples: Sequence[Example], steps: _Steps) -> list[Sums]:
    """Return what speaks for each label of each issue, by weights not taught by its fold."""
    folds = _folds(rows.issues)
    sums: list[Sums] = [[] for _ in examples]
    for fold in range(FOLDS):
        taught = teach(
            [e for e, at in zip(examples, folds, strict=True) if at != fold], rows.labels
        )
        for at, example in enumerate(examples):
            if folds[at] == fold:
                sums[at] = sums_of(taught.shared, taught.groups.get(example.group), example.found)
        steps.next()
    return sums


def _answers(rows: Rows, sums: Sequence[Sums], temperature: float) -> Iterator[Answer]:
    for row, found in zip(rows.issues, sums, strict=True):
        chances = chances_of(found, temperature)
        sure = max(chances)
        yield Answer(row.label, rows.labels[chances.index(sure)], sure, row.group or "")


def _surprise(rows: Rows, sums: Sequence[Sums], temperature: float) -> float:
    """Return how unlikely the truth was said to be, in all."""
    chances = (chances_of(found, temperature) for found in sums)
    truth = (rows.labels.index(row.label) for row in rows.issues)
    return -sum(math.log(max(c[at], 1e-12)) for c, at in zip(chances, truth, strict=True))


def measure(classifier: Classifier, rows: Rows) -> list[Answer]:
    """Return what a classifier says of each issue."""
    answers = []
    for row in rows.issues:
        guess = classifier.guess(row.title, row.body or "", row.group or "")
        answers.append(Answer(row.label, guess.label, guess.sure, row.group or ""))
    return answers
