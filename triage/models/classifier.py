"""Scores an issue by weights: sums of looked-up numbers, in plain Python.

Why it exists: a worker that loads a numeric runtime to add up a few hundred numbers would pay for
it in every process. The numbers are whole, so equal text gets equal answers on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.models.learned_text import Block, read_issue
from triage.models.learned_weights import UNIT, Layer, Weights, read_weights

Found = Mapping[Block, set[str]]


@dataclass(frozen=True, slots=True)
class Guess:
    """What an issue most likely is.

    Attributes:
        label: the likeliest of the classifier's labels; the first of them where several are.
        sure: how likely, from 0 to 1.
        chances: how likely each label is, in the order of the labels.
    """

    label: str
    sure: float
    chances: tuple[float, ...]


class Classifier:
    """Guesses what issues are; equal issues get equal guesses."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.digest = weights.digest()

    @classmethod
    def of(cls, data: bytes) -> Classifier:
        """Return the classifier that written weights are.

        Raises:
            ContractError: they cannot be used.
        """
        return cls(read_weights(data))

    @property
    def labels(self) -> tuple[str, ...]:
        """What an issue may be."""
        return self.weights.labels

    def guess(self, title: str, body: str, group: str = "") -> Guess:
        """Return what an issue most likely is; one of an unknown group by what all have."""
        weights, own = self.weights, self.weights.groups.get(group)
        shared = weights.shared if own is not None or weights.alone is None else weights.alone
        sums = sums_of(shared, own, read_issue(title, body))
        chances = chances_of(sums, self.weights.temperature)
        sure = max(chances)
        return Guess(self.labels[chances.index(sure)], sure, chances)

    def is_sure(self, guess: Guess) -> bool:
        """Whether a guess is likely enough to be an answer."""
        threshold = self.weights.threshold
        return threshold is not None and guess.sure >= threshold


def sums_of(shared: Layer, own: Layer | None, found: Found) -> list[float]:
    """Return what speaks for each label: what a block says is shared out among what it holds."""
    layers = (shared,) if own is None else (shared, own)
    sums = [
        sum(column) / UNIT for column in zip(*(layer.intercepts for layer in layers), strict=True)
    ]
    for block, features in found.items():
        known = shared.features.get(block, {}).keys() & features
        for layer in layers if known else ():
            for at, number in enumerate(_added_up(layer, block, known)):
                sums[at] += number / (UNIT * math.sqrt(len(known)))
    return sums


def _added_up(layer: Layer, block: Block, known: set[str]) -> list[int]:
    rows = layer.features.get(block, {})
    return [
        sum(column) for column in zip(*(rows[name] for name in known if name in rows), strict=True)
    ]


def chances_of(sums: Sequence[float], temperature: float) -> tuple[float, ...]:
    """Return how likely each label is."""
    highest = max(sums)
    powers = [math.exp((number - highest) / temperature) for number in sums]
    return tuple(power / sum(powers) for power in powers)
