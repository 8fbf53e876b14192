"""Thresholds: what rates an evaluation must reach, so that its exit status is a gate. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from triage.bounded import read_at_most
from triage.evaluation.fixture import MAX_FILE_BYTES, FixtureError, shown
from triage.evaluation.judging import Behaviour, Grade
from triage.evaluation.summary import Summary
from triage.policy.toml_text import TomlError, toml_table

TABLE: Final = "thresholds"
MEANS: Final = ("steps", "tokens", "cost_micros")
"""What is no rate but a mean over the cases."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """One bound of one number.

    Attributes:
        metric: ``GRADE``, ``BEHAVIOUR.GRADE`` or one of `MEANS`.
        bound: what it must not pass.
        is_minimum: whether it must be at least that, else at most.
    """

    metric: str
    bound: float
    is_minimum: bool

    def __str__(self) -> str:
        return f"{self.metric} {'>=' if self.is_minimum else '<='} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Checked:
    """A threshold, and what it was held against; None where no case says anything about it."""

    threshold: Threshold
    actual: float | None

    @property
    def holds(self) -> bool:
        """Whether it is kept; nothing is not enough."""
        if self.actual is None:
            return False
        if self.threshold.is_minimum:
            return self.actual >= self.threshold.bound
        return self.actual <= self.threshold.bound


def check(thresholds: Iterable[Threshold], summary: Summary) -> tuple[Checked, ...]:
    """Hold a summary against thresholds."""
    return tuple(Checked(one, _actual(one.metric, summary)) for one in thresholds)


def from_options(minimums: Iterable[str], maximums: Iterable[str]) -> Iterator[Threshold]:
    """Read thresholds as options give them, ``METRIC=NUMBER``.

    Raises:
        FixtureError: one is not of that form.
    """
    for texts, is_minimum in ((minimums, True), (maximums, False)):
        for text in texts:
            metric, _, number = text.partition("=")
            yield _threshold(metric, number, is_minimum=is_minimum)


def read_thresholds(path: Path) -> tuple[Threshold, ...]:
    """Read the tables ``[thresholds.min]`` and ``[thresholds.max]`` of a TOML file.

    Raises:
        FixtureError: it cannot be read, or holds anything that is no threshold.
    """
    try:
        value = toml_table(read_at_most(path, MAX_FILE_BYTES).decode("utf-8-sig"))
    except OSError as error:
        why = error.strerror or "unknown error"
        raise FixtureError(f"{shown(path)}: cannot be read ({why})") from None
    except TomlError as error:
        raise FixtureError(f"{shown(path)}: {error.told()}; correct it there") from None
    except UnicodeDecodeError:
        raise FixtureError(f"{shown(path)}: is not UTF-8 text; save it as UTF-8") from None
    try:
        return tuple(_from_tables(value.get(TABLE)))
    except FixtureError as error:
        raise FixtureError(f"{shown(path)}: {error}") from None


def _from_tables(tables: Any) -> Iterator[Threshold]:  # noqa: ANN401 - any TOML value
    if not isinstance(tables, dict) or not tables or set(tables) - {"min", "max"}:
        raise FixtureError(f"needs [{TABLE}.min] or [{TABLE}.max], and no other table in it")
    for side, table in tables.items():
        if not isinstance(table, dict):
            raise FixtureError(f"{TABLE}.{side} must be a table")
        for metric, number in _flat(table):
            yield _threshold(metric, number, is_minimum=side == "min")


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield ``security.right = 1`` whether its name is quoted or not."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _threshold(metric: str, number: Any, *, is_minimum: bool) -> Threshold:  # noqa: ANN401 - any value
    name = metric.strip()
    if name not in _metrics():
        raise FixtureError(
            f"a threshold is about one of {', '.join((*Grade, *MEANS))}, or one of the first four"
            f" after {', '.join(f'{b}.' for b in Behaviour)}, as in security.right=1"
        )
    try:
        bound = math.nan if isinstance(number, bool) else float(number)
    except (OverflowError, TypeError, ValueError):
        bound = math.nan
    is_rate = name not in MEANS
    if not math.isfinite(bound) or bound < 0 or (is_rate and bound > 1):
        raise FixtureError(f"the threshold of {name} must be a number{' from 0 to 1' * is_rate}")
    return Threshold(name, bound, is_minimum)


def _metrics() -> frozenset[str]:
    named = (f"{behaviour}.{grade}" for behaviour in Behaviour for grade in Grade)
    return frozenset((*Grade, *MEANS, *named))


def _actual(metric: str, summary: Summary) -> float | None:
    if metric in MEANS:
        total: int = getattr(summary.totals, metric)
        return total / len(summary.judged)
    behaviour, _, grade = metric.rpartition(".")
    found = summary.rate(Behaviour(behaviour or Behaviour.CASE), Grade(grade))
    return found.value if found.total else None
