"""Figures of several windows: a ratio with its spread, and whether a measurement counts at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final

FAIR_LOW: Final = 0.95
FAIR_HIGH: Final = 1.05
_QUARTILES_FROM: Final = 2


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of some figures and how far they reach.

    Attributes:
        median: the middle one.
        lower_quartile: a quarter of them is less; the least one where there is only one.
        upper_quartile: a quarter of them is more; likewise.
        least: the smallest.
        most: the largest.
        count: how many there are.
    """

    median: float
    lower_quartile: float
    upper_quartile: float
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        """Sum up at least one figure.

        Raises:
            ValueError: there is none.
        """
        if not figures:
            raise ValueError("no figures to sum up")
        low = high = figures[0]
        if len(figures) >= _QUARTILES_FROM:
            low, _, high = quantiles(figures, n=4, method="inclusive")
        return cls(median(figures), low, high, min(figures), max(figures), len(figures))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f}..{self.most:.2f})"


def ratios(figures: Sequence[float], floor: Sequence[float]) -> list[float]:
    """Return each figure against the floor's of the same window.

    Windows in which the floor used nothing that could be measured are left out.

    Raises:
        ValueError: there are not as many of one as of the other.
    """
    return [mine / base for mine, base in zip(figures, floor, strict=True) if base > 0]


def counts(floor_again: Spread) -> bool:
    """Whether a measurement counts: what is measured against itself has to come out as one."""
    return FAIR_LOW <= floor_again.median <= FAIR_HIGH
