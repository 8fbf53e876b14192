"""Teaches a classifier: multinomial logistic regression over what issues hold.

Why it exists: the one place that needs a numeric library. It is loaded when something is learned
and at no other time, and what comes out are plain numbers.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from triage.learning.rows import RowsError
from triage.learning.telling import Row, telling
from triage.models.learned_text import Block
from triage.models.learned_weights import MAX_FEATURE_CHARS, UNIT, Layer

INVERSE_PENALTY: Final = 1.0
EMPHASIS: Final[Mapping[Block, float]] = {
    Block.TITLE: 0.85,
    Block.BODY: 1.0,
    Block.FIRST: 1.0,
    Block.PART: 1.0,
    Block.LINE: 0.85,
    Block.FORM: 0.55,
}
"""How much a block may say: a larger one is penalised less for the same effect."""
OWN_EMPHASIS: Final[Mapping[Block, float]] = {
    Block.TITLE: 0.7,
    Block.BODY: 0.7,
    Block.FIRST: 0.7,
    Block.LINE: 0.7,
    Block.FORM: 0.55,
}
OWN_INTERCEPT: Final = 0.3
"""The same for what a group adds of its own, so that it speaks up only where its issues differ."""

MIN_ISSUES: Final = 2
"""What occurs in fewer issues than that says nothing about others."""
MAX_SHARED: Final = 60_000
LEAST_OWN: Final = 5
"""A weight of a group's own, in thousandths, that is written at all."""
MAX_ROUNDS: Final = 2_000

_Features = dict[Block, dict[str, tuple[int, ...]]]
_ALONE: Final = -1


class LearningUnavailable(Exception):  # noqa: N818 - the name says what happened
    """The library that training needs is not installed; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Example:
    """An issue to learn from: what it holds, what it is, and the group whose numbers it shapes.

    Without a group it shapes what all share, as every issue does.
    """

    found: Mapping[Block, set[str]]
    label: str
    group: str


@dataclass(frozen=True, slots=True)
class Taught:
    """What was learned: layers as `triage.models.learned_weights` has them."""

    shared: Layer
    groups: dict[str, Layer]


def teach(examples: Sequence[Example], labels: Sequence[str]) -> Taught:
    """Learn from examples; the same ones in the same order give the same numbers.

    Args:
        examples: of at least two labels.
        labels: all labels that occur, sorted.

    Raises:
        RowsError: there is a label without an example.
        LearningUnavailable: the library is not installed.
    """
    if {example.label for example in examples} != set(labels):
        raise RowsError("the issues of a label have nearly all the texts of another one")
    table = _Table(_vocabulary(examples), examples)
    numbers, intercepts = _fitted(table, [example.label for example in examples], labels)
    return _layers(table, numbers, intercepts)


def _vocabulary(examples: Sequence[Example]) -> list[tuple[Block, str]]:
    """Return the features that are learned: those of most issues, where there are too many."""
    counts: dict[Block, Counter[str]] = {block: Counter() for block in Block}
    for example in examples:
        for block, features in example.found.items():
            counts[block].update(features)
    frequent = (
        (-count, block, name)
        for block, names in counts.items()
        for name, count in names.items()
        if count >= MIN_ISSUES and len(name) <= MAX_FEATURE_CHARS
    )
    return [(block, name) for _, block, name in heapq.nsmallest(MAX_SHARED, frequent)]


class _Table:
    """Examples as rows of numbers: a column for each feature, and for each that a group has too."""

    def __init__(
        self, vocabulary: Sequence[tuple[Block, str]], examples: Sequence[Example]
    ) -> None:
        self.vocabulary = vocabulary
        self.own: dict[str, dict[int, int]] = {}
        """By group: which column stands for a feature's own number; the intercept's is `_ALONE`."""
        self.width = len(vocabulary)
        self.places: list[int] = []
        self.values: list[float] = []
        self.ends = [0]
        columns: dict[Block, dict[str, int]] = {block: {} for block in Block}
        for at, (block, name) in enumerate(vocabulary):
            columns[block][name] = at
        rows = [_row(example, columns) for example in examples]
        self.tells = telling(rows, [example.label for example in examples], self.width)
        for example, row in zip(examples, rows, strict=True):
            self._add(example.group, row)

    def _add(self, group: str, row: Row) -> None:
        """Add a row: of what all share, and of what its group has of its own."""
        for block, known in row:
            said = [self.tells[at] for at in known]
            self._fill(known, said, EMPHASIS[block])
            if group and block in OWN_EMPHASIS:
                self._fill(self._own(group, known), said, OWN_EMPHASIS[block])
        if group:
            self._fill(self._own(group, [_ALONE]), [1.0], OWN_INTERCEPT)
        self.ends.append(len(self.places))

    def _fill(self, columns: Sequence[int], said: Sequence[float], emphasis: float) -> None:
        """Share a block's emphasis out among its columns, by what they tell."""
        self.places += columns
        if columns:
            self.values += [emphasis * tell / math.sqrt(len(columns)) for tell in said]

    def _own(self, group: str, columns: Sequence[int]) -> list[int]:
        own = self.own.setdefault(group, {})
        for at in columns:
            if at not in own:
                own[at] = self.width
                self.width += 1
        return [own[at] for at in columns]


def _row(example: Example, columns: Mapping[Block, Mapping[str, int]]) -> Row:
    return [
        (block, sorted(columns[block][name] for name in columns[block].keys() & features))
        for block, features in example.found.items()
    ]


def _fitted(
    table: _Table, truth: Sequence[str], labels: Sequence[str]
) -> tuple[list[tuple[float, ...]], list[float]]:
    """Return the numbers of each column, one a label, and the numbers that every issue gets."""
    try:
        from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to load, and an extra
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - likewise
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 - likewise
    except ImportError:
        raise LearningUnavailable("learning needs scikit-learn, which is not installed") from None
    shape = (len(truth), table.width)
    matrix = csr_matrix((table.values, table.places, table.ends), shape=shape)
    model = LogisticRegression(C=INVERSE_PENALTY, max_iter=MAX_ROUNDS)
    # Several threads would wait for each other, and add numbers up in another order each time.
    with threadpool_limits(limits=1):
        model.fit(matrix, list(truth))
    rows = [row.tolist() for row in model.coef_]
    intercepts = model.intercept_.tolist()
    if len(labels) == 2:  # noqa: PLR2004 - of two labels, the library learns the second one's alone
        rows, intercepts = [[0.0] * table.width, *rows], [0.0, *intercepts]
    return list(zip(*rows, strict=True)), intercepts


def _layers(
    table: _Table, numbers: Sequence[tuple[float, ...]], intercepts: Sequence[float]
) -> Taught:
    """Return what was learned as whole numbers, each block's emphasis worked in."""
    shared: _Features = {}
    for at, (block, name) in enumerate(table.vocabulary):
        shared.setdefault(block, {})[name] = _whole(numbers[at], EMPHASIS[block] * table.tells[at])
    groups = {
        group: _own_layer(table, numbers, columns) for group, columns in sorted(table.own.items())
    }
    return Taught(Layer(intercepts=_whole(intercepts, 1.0), features=shared), groups)


def _own_layer(
    table: _Table, numbers: Sequence[tuple[float, ...]], columns: Mapping[int, int]
) -> Layer:
    """Return what a group adds; what is next to nothing is left out."""
    features: _Features = {}
    for at, column in columns.items():
        if at == _ALONE:
            continue
        block, name = table.vocabulary[at]
        whole = _whole(numbers[column], OWN_EMPHASIS[block] * table.tells[at])
        if max(map(abs, whole)) >= LEAST_OWN:
            features.setdefault(block, {})[name] = whole
    intercepts = _whole(numbers[columns[_ALONE]], OWN_INTERCEPT)
    return Layer(intercepts=intercepts, features=features)


def _whole(numbers: Sequence[float], factor: float) -> tuple[int, ...]:
    return tuple(round(number * factor * UNIT) for number in numbers)
