"""Numbers in the text format that Prometheus and its relatives scrape.

Why it exists: the format is three kinds of lines, and no library of ours has it. What it must never
do is let a name end its quotes, or make more series than somebody can pay for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from triage.cli.text import quoted, shorten, visible

MAX_NAME_CHARS: Final = 64
MAX_GROUPS: Final = 200
OTHER: Final = "(other)"
"""Stands for every name beyond `MAX_GROUPS`; no label of GitHub's needs it."""

Names = tuple[str, ...]


@dataclass(frozen=True)
class Gauge:
    """A number that may go up and down, for each combination of some labels.

    Attributes:
        name: of the metric.
        help: one plain line.
        samples: the numbers, each with its labels.
    """

    name: str
    help: str
    samples: Sequence[tuple[Mapping[str, str], float]]


def lines(gauges: Iterable[Gauge]) -> Iterator[str]:
    """Return the lines of some metrics; one that has no number is left out."""
    for gauge in gauges:
        if gauge.samples:
            yield f"# HELP {gauge.name} {gauge.help}"
            yield f"# TYPE {gauge.name} gauge"
            yield from (_sample(gauge.name, *sample) for sample in gauge.samples)


def bounded(groups: Mapping[Names, Counter[Names]]) -> dict[Names, Counter[Names]]:
    """Return counts by names that are short, plain and few, in the order of the names.

    Where there are too many, the largest stay as they are and the others are counted together: the
    sum is what it was.
    """
    named: dict[Names, Counter[Names]] = {}
    for names, counts in groups.items():
        short = tuple(shorten(visible(name), MAX_NAME_CHARS) for name in names)
        named.setdefault(short, Counter()).update(counts)
    largest = sorted(named, key=lambda names: (-named[names].total(), names))
    kept = {names: named[names] for names in sorted(largest[:MAX_GROUPS])}
    for names in largest[MAX_GROUPS:]:
        kept.setdefault((OTHER,) * len(names), Counter()).update(named[names])
    return kept


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f"{key}={quoted(text)}" for key, text in labels.items())
    number = int(value) if float(value).is_integer() else value
    return f"{name}{{{inside}}} {number}" if inside else f"{name} {number}"
