"""How much each feature tells of an issue's label, so that what tells more may say more.

Why it exists: most of what a few hundred issues hold is as frequent with every label, and still
speaks a little for one of them by chance. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from triage.models.learned_text import Block

LEAST: Final = 0.2
"""What a feature may say that is exactly as frequent with each label as with the others."""

Row = Sequence[tuple[Block, Sequence[int]]]
"""One issue: the columns of what each of its blocks holds."""


def telling(rows: Sequence[Row], labels: Sequence[str], width: int) -> list[float]:
    """Return by how much each column is to be multiplied.

    A block stays as strong as it would be without, in the mean of the issues that have any of it.

    Args:
        rows: the issues.
        labels: what each is.
        width: how many columns there are.
    """
    tells = _distances(rows, labels, width)
    strengths = _strengths(rows, tells)
    blocks = {at: block for row in rows for block, columns in row for at in columns}
    return [tell / strengths[blocks[at]] if at in blocks else tell for at, tell in enumerate(tells)]


def _distances(rows: Sequence[Row], labels: Sequence[str], width: int) -> list[float]:
    """Return how far each column is from what its frequency alone has one expect with a label."""
    counts: dict[str, Counter[int]] = {label: Counter() for label in labels}
    for row, label in zip(rows, labels, strict=True):
        for _, columns in row:
            counts[label].update(columns)
    parts = {label: count / len(labels) for label, count in Counter(labels).items()}
    return [_distance(at, counts, parts) for at in range(width)]


def _distance(at: int, counts: Mapping[str, Counter[int]], parts: Mapping[str, float]) -> float:
    """Return how far a column's likeliest or least likely label stands out from all of them."""
    total = sum(count[at] for count in counts.values())
    logs = [
        math.log((count[at] + 1) / (total * parts[label] + 1)) for label, count in counts.items()
    ]
    middle = sum(logs) / len(logs)
    return LEAST + max(abs(log - middle) for log in logs)


def _strengths(rows: Sequence[Row], tells: Sequence[float]) -> dict[Block, float]:
    squares: dict[Block, list[float]] = {block: [] for block in Block}
    for row in rows:
        for block, columns in row:
            if columns:
                squares[block].append(sum(tells[at] ** 2 for at in columns) / len(columns))
    return {
        block: math.sqrt(sum(found) / len(found)) if found else 1.0
        for block, found in squares.items()
    }
