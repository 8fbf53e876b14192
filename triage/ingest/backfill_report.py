"""What a backfill says of rules and model: proposals beside what people decided. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue

from triage.contracts.response import Status
from triage.trackers.base import label_key

NONE: Final = "(none)"
ABSTAINED: Final = "(abstained)"
FAILED: Final = "(failed)"


@dataclass(frozen=True, kw_only=True)
class LabelCount:
    """How often proposals and people agreed on one label."""

    label: str
    both: int
    only_proposed: int
    only_people: int


@dataclass(frozen=True, kw_only=True)
class Report:
    """What came of all issues.

    Attributes:
        issues: how many were tried.
        answered: how many runs came to an answer by themselves.
        abstained: how many were handed to a person.
        failed: how many ended without either.
        failures: how often each failure class was the reason.
        labels: one row a label of the rules.
        confusion: what people decided against what was proposed, with how often.
        tokens: what all runs used.
        cost_micros: what they cost, in millionths.
    """

    issues: int
    answered: int
    abstained: int
    failed: int
    failures: dict[str, int]
    labels: tuple[LabelCount, ...]
    confusion: dict[tuple[str, str], int]
    tokens: int
    cost_micros: int

    def to_json(self) -> dict[str, JsonValue]:
        """Return it as data."""
        pairs: list[JsonValue] = [
            {"people": people, "proposed": proposed, "count": count}
            for (people, proposed), count in sorted(self.confusion.items())
        ]
        return {
            "issues": self.issues,
            "answered": self.answered,
            "abstained": self.abstained,
            "failed": self.failed,
            "failures": dict(self.failures),
            "labels": [vars(label) for label in self.labels],
            "confusion": pairs,
            "tokens": self.tokens,
            "cost_micros": self.cost_micros,
        }


def report_of(results: Iterable[Mapping[str, Any]], known: Collection[str]) -> Report:
    """Count what came of the issues.

    Args:
        results: one a tried issue.
        known: the labels that the rules let a model propose; others are not compared.
    """
    rows = list(results)
    statuses = Counter(row["status"] for row in rows)
    pairs = [_compared(row, known) for row in rows]
    confusion = Counter(pair for row in pairs for pair in row)
    return Report(
        issues=len(rows),
        answered=statuses[Status.COMPLETED.value],
        abstained=statuses[Status.REVIEW_REQUIRED.value],
        failed=statuses[Status.FAILED.value],
        failures=dict(sorted(Counter(row["failure"] for row in rows if row["failure"]).items())),
        labels=tuple(_counted(label, confusion) for label in sorted(known)),
        confusion=dict(confusion),
        tokens=sum(row["tokens"] for row in rows),
        cost_micros=sum(row["cost_micros"] for row in rows),
    )


def _compared(row: Mapping[str, Any], known: Collection[str]) -> list[tuple[str, str]]:
    """Return what people decided and what was proposed, in pairs: equal ones first.

    A label on one side alone stands against each on the other that has no equal, or against none.
    """
    people, proposed = _of(row["people"], known), _of(row["labels"], known)
    if row["status"] != Status.COMPLETED.value:
        said = ABSTAINED if row["status"] == Status.REVIEW_REQUIRED.value else FAILED
        return [(label, said) for label in people or [NONE]]
    same = [(label, label) for label in people if label in proposed]
    left = [label for label in people if label not in proposed]
    right = [label for label in proposed if label not in people]
    others = [(a, b) for a in left or [NONE] for b in right or [NONE]]
    return [*same, *(pair for pair in others if pair != (NONE, NONE) or not same)]


def _of(labels: Iterable[str], known: Collection[str]) -> list[str]:
    """Return those that the rules know, spelt as there."""
    spelt = {label_key(label): label for label in known}
    return sorted({spelt[label_key(label)] for label in labels if label_key(label) in spelt})


def _counted(label: str, confusion: Mapping[tuple[str, str], int]) -> LabelCount:
    others = [(pair, count) for pair, count in confusion.items() if pair != (label, label)]
    return LabelCount(
        label=label,
        both=confusion.get((label, label), 0),
        only_proposed=sum(count for (_, proposed), count in others if proposed == label),
        only_people=sum(count for (people, _), count in others if people == label),
    )
