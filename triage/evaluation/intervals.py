"""How sure a rate is, and a difference of rates on the same cases. Pure.

Why it exists: three of four and seventy-five of a hundred are the same rate and not the same
knowledge. Every rate in a report stands with its interval, at 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

Z: Final = 1.959963984540054
"""Of the normal distribution, for 95 %."""
_HALF: Final = 0.5


@dataclass(frozen=True, slots=True)
class Rate:
    """A part of a whole, with Wilson's score interval."""

    count: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The rate itself; 0 of nothing."""
        return self.count / self.total if self.total else 0.0


def rate(count: int, total: int) -> Rate:
    """Return a rate with its interval; of nothing, it may be anything."""
    if not total:
        return Rate(0, 0, 0.0, 1.0)
    share, square = count / total, Z * Z
    middle = (share + square / (2 * total)) / (1 + square / total)
    spread = math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    half = spread * Z / (1 + square / total)
    # At the ends the interval closes exactly, which floating point would miss by a hair.
    low = 0.0 if count == 0 else max(middle - half, 0.0)
    high = 1.0 if count == total else min(middle + half, 1.0)
    return Rate(count, total, low, high)


@dataclass(frozen=True, slots=True)
class Difference:
    """The second rate less the first, on the same cases.

    Attributes:
        value: the difference.
        low: Newcombe's interval for paired proportions (1998, method 10).
        high: likewise.
        gained: the cases that have it with the second configuration alone.
        lost: those that have it with the first alone.
        p: McNemar's exact test: how likely so uneven a split is if neither is better.
    """

    value: float
    low: float
    high: float
    gained: int
    lost: int
    p: float


def difference(pairs: Iterable[tuple[bool, bool]]) -> Difference:
    """Compare two configurations by pairs: whether a case has it with the first, and the second."""
    both = gained = lost = neither = 0
    for first, second in pairs:
        both += first and second
        gained += second and not first
        lost += first and not second
        neither += not (first or second)
    total = both + gained + lost + neither
    if not total:
        return Difference(0.0, -1.0, 1.0, 0, 0, 1.0)
    before, after = rate(both + lost, total), rate(both + gained, total)
    value = after.value - before.value
    phi = _correlation(both, lost, gained, neither)
    down = _reach(after.value - after.low, before.high - before.value, phi)
    up = _reach(after.high - after.value, before.value - before.low, phi)
    p = mcnemar(gained, lost)
    return Difference(value, max(value - down, -1.0), min(value + up, 1.0), gained, lost, p)


def mcnemar(gained: int, lost: int) -> float:
    """Return the two-sided exact p-value of a split among the cases that differ."""
    differ, fewer = gained + lost, min(gained, lost)
    tail = sum(math.comb(differ, k) for k in range(fewer + 1))
    # Whole numbers first: two to a large power is no floating-point number.
    return min(1.0, 2 * tail / 2**differ) if differ else 1.0


def _reach(first: float, second: float, phi: float) -> float:
    return math.sqrt(max(first * first - 2 * phi * first * second + second * second, 0.0))


def _correlation(both: int, lost: int, gained: int, neither: int) -> float:
    """Return how much the two agree beyond chance, corrected for continuity as Newcombe does."""
    margins = (both + lost) * (gained + neither) * (both + gained) * (lost + neither)
    if not margins:
        return 0.0
    product = both * neither - lost * gained
    half = (both + lost + gained + neither) * _HALF
    product_corrected = max(product - half, 0.0) if product > 0 else float(product)
    return product_corrected / math.sqrt(margins)
