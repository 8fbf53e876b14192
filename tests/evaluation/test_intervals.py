"""How sure a rate or a difference is."""

from __future__ import annotations

import random

import pytest

from triage.evaluation.intervals import difference, mcnemar, rate


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        # Wilson (1927) as Newcombe (1998, Statistics in Medicine 17, 857) lists it.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (20, 20, 0.8389, 1.0),
    ],
)
def test_the_interval_is_wilson_s(count: int, total: int, low: float, high: float) -> None:
    """Published values come out to the fourth place."""
    found = rate(count, total)
    assert (low, high) == pytest.approx((found.low, found.high), abs=5e-5)


def test_nothing_is_known_of_nothing() -> None:
    """A rate of no cases may be anything."""
    assert (0.0, 0.0, 1.0) == (rate(0, 0).value, rate(0, 0).low, rate(0, 0).high)
    assert (-1.0, 1.0, 1.0) == (difference([]).low, difference([]).high, difference([]).p)


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 5, 1.0), (6, 0, 0.03125), (10, 2, 158 / 4096), (900, 0, 0.0)],
)
def test_the_test_is_mcnemar_s_exact_one(gained: int, lost: int, p: float) -> None:
    """It is the two-sided binomial test of the cases that differ, either way round."""
    assert p == pytest.approx(mcnemar(gained, lost)) == pytest.approx(mcnemar(lost, gained))


def _pairs(both: int, lost: int, gained: int, neither: int) -> list[tuple[bool, bool]]:
    return [
        *[(True, True)] * both,
        *[(True, False)] * lost,
        *[(False, True)] * gained,
        *[(False, False)] * neither,
    ]


@pytest.mark.parametrize(
    "table", [(40, 5, 15, 40), (70, 2, 20, 8), (10, 30, 10, 50), (0, 25, 25, 50)]
)
def test_a_difference_s_interval_is_that_of_a_bootstrap(table: tuple[int, int, int, int]) -> None:
    """With a hundred cases it is, within two points, what resampling the pairs gives."""
    pairs = _pairs(*table)
    found = difference(pairs)
    source = random.Random(20260)  # noqa: S311 - a test repeats it
    diffs = [after - before for before, after in pairs]
    means = sorted(sum(source.choices(diffs, k=len(diffs))) / len(diffs) for _ in range(4_000))
    assert (means[100], means[3_900]) == pytest.approx((found.low, found.high), abs=0.02)
    assert (table[2], table[1]) == (found.gained, found.lost)


def test_two_that_agree_differ_by_nothing() -> None:
    """The interval of no difference holds none, and is never beyond what is possible."""
    same = difference(_pairs(30, 0, 0, 10))
    assert 0.0 == same.value
    assert same.low <= 0 <= same.high
    one_sided = difference(_pairs(0, 0, 5, 0))
    assert (1.0, 1.0) == (one_sided.value, one_sided.high)
    assert one_sided.low > 0.2
