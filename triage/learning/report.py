"""What is said of a classifier: how good it is, where it errs, and what it looks at. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from pydantic import JsonValue

from triage.learning.measures import (
    Answer,
    accuracy,
    answered,
    confusion,
    coverage_curve,
    label_scores,
    macro_f1,
    point,
)
from triage.models.learned_weights import Weights

DIGITS: Final = 4
TOP_FEATURES: Final = 12


@dataclass(frozen=True, slots=True)
class Measured:
    """Answers to issues that the classifier was not taught by.

    Attributes:
        on: ``cross-validation`` or ``test``.
        answers: one an issue.
        labels: the labels that are known, sorted.
    """

    on: str
    answers: Sequence[Answer]
    labels: tuple[str, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the groups that have a name, sorted."""
        return tuple(sorted({answer.group for answer in self.answers if answer.group}))

    def of(self, group: str) -> list[Answer]:
        """Return the answers to the issues of one group."""
        return [answer for answer in self.answers if answer.group == group]


def measured_json(measured: Measured, threshold: float | None) -> dict[str, JsonValue]:
    """Return all figures, rounded; the threshold is the one that was chosen beforehand."""
    answers, labels = measured.answers, measured.labels
    document: dict[str, JsonValue] = {
        "measured_on": measured.on,
        "issues": len(answers),
        "macro_f1": _rounded(macro_f1(answers, labels)),
        "accuracy": _rounded(accuracy(answers)),
        "per_label": {
            label: _figures(asdict(score)) for label, score in label_scores(answers, labels).items()
        },
        "coverage": [_figures(asdict(p)) for p in coverage_curve(answers)],
        "abstain": _figures(asdict(point(answers, threshold))),
        "confusion": _table(confusion(answers, labels)),
        "confusion_answered": _table(confusion(answered(answers, threshold), labels)),
    }
    if measured.groups:
        document |= _by_group(measured)
    return document


def _by_group(measured: Measured) -> dict[str, JsonValue]:
    scores = {name: macro_f1(measured.of(name), measured.labels) for name in measured.groups}
    groups: dict[str, JsonValue] = {
        name: {
            "issues": len(measured.of(name)),
            "macro_f1": _rounded(score),
            "accuracy": _rounded(accuracy(measured.of(name))),
        }
        for name, score in scores.items()
    }
    mean = sum(scores.values()) / len(scores)
    return {"macro_f1_mean_of_groups": _rounded(mean), "per_group": groups}


def _figures(values: Mapping[str, float | int]) -> dict[str, JsonValue]:
    return {name: _rounded(value) for name, value in values.items()}


def _rounded(value: float) -> float | int:
    return value if isinstance(value, int) else round(value, DIGITS)


def _table(counts: Mapping[str, Mapping[str, int]]) -> dict[str, JsonValue]:
    return {true: dict(said) for true, said in counts.items()}


def heaviest(weights: Weights) -> dict[str, JsonValue]:
    """Return what speaks most for each label, wherever an issue comes from: ``block: feature``."""
    top: dict[str, JsonValue] = {}
    for at, label in enumerate(weights.labels):
        leads = (
            (_lead(row, at), f"{block.value}: {name}")
            for block, features in weights.shared.features.items()
            for name, row in features.items()
        )
        best = heapq.nsmallest(TOP_FEATURES, leads, key=lambda lead: (-lead[0], lead[1]))
        top[label] = [name for _, name in best]
    return top


def _lead(row: Sequence[int], at: int) -> int:
    """Return by how much a feature speaks more for one label than for any other."""
    return row[at] - max(number for other, number in enumerate(row) if other != at)
