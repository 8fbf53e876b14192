"""What `triage outcomes` read, told as a table, as JSON and as metrics. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from triage.cli.exposition import Gauge, Names, bounded
from triage.trackers.outcomes import Became, Mark, Outcome

_ACCEPTED: Final = ("accepted",)


@dataclass(frozen=True)
class Report:
    """Marks with their outcomes, and what calls of models cost in that time.

    Attributes:
        since: from when on.
        outcomes: each mark with what became of it.
        cost_micros: of all calls of models.
        knows_runs: whether what runs only suggested is among the marks.
    """

    since: datetime
    outcomes: Sequence[tuple[Mark, Outcome]]
    cost_micros: int
    knows_runs: bool

    @property
    def accepted(self) -> int:
        """How many labels a person's act stands behind."""
        return sum(outcome.accepted for _, outcome in self.outcomes)

    @property
    def cost_each_micros(self) -> int | None:
        """What an accepted label cost; None if there is none."""
        return round(self.cost_micros / self.accepted) if self.accepted else None


def rows(found: Sequence[tuple[Mark, Outcome]]) -> list[dict[str, JsonValue]]:
    """Count by label and component, in the order of their names."""
    groups: dict[tuple[str, str], list[tuple[Mark, Outcome]]] = {}
    for mark, outcome in found:
        groups.setdefault((mark.label, mark.component), []).append((mark, outcome))
    return [_row(*names, groups[names]) for names in sorted(groups)]


def _row(label: str, component: str, found: Sequence[tuple[Mark, Outcome]]) -> dict[str, JsonValue]:
    became = Counter(outcome.became for _, outcome in found)
    written = sum(mark.write is not None for mark, _ in found)
    counts: dict[str, JsonValue] = {kind.value: became[kind] for kind in Became}
    return {
        "label": label,
        "component": component or "-",
        "written": written,
        "suggested": len(found) - written,
        **counts,
        "accepted": sum(outcome.accepted for _, outcome in found),
    }


def cost(report: Report) -> str:
    """Say what calls of models cost, and what that is for each accepted label."""
    total = f"models cost {report.cost_micros:,} millionths"
    if report.cost_each_micros is None:
        return f"{total}; no label was accepted"
    each = f"{report.cost_each_micros:,} for each accepted label"
    return f"{total}, {each} ({report.accepted} accepted)"


def as_json(report: Report) -> JsonValue:
    """Return everything that was read, for programs."""
    return {
        "since": report.since.isoformat(),
        "runs_read": report.knows_runs,
        "rows": [*rows(report.outcomes)],
        "labels": [_mark_json(mark, outcome) for mark, outcome in report.outcomes],
        "accepted": report.accepted,
        "cost_micros": report.cost_micros,
        "cost_per_accepted_micros": report.cost_each_micros,
    }


def _mark_json(mark: Mark, outcome: Outcome) -> JsonValue:
    return {
        "workflow_id": mark.workflow_id,
        "target": {
            "tracker": mark.tracker,
            "repository": mark.repository,
            "issue": mark.issue,
        },
        "label": mark.label,
        "component": mark.component or None,
        "at": mark.at.isoformat(),
        "written": mark.write is not None,
        "became": outcome.became.value,
        "accepted": outcome.accepted,
    }


def gauges(report: Report) -> Iterator[Gauge]:
    """Return the numbers of a report: they are of a window that moves on, so none only grows.

    Their labels name labels and components; no issue, no run and no person.
    """
    groups: dict[Names, Counter[Names]] = {}
    for mark, outcome in report.outcomes:
        counts = groups.setdefault((mark.label, mark.component), Counter())
        counts[_origin(mark), outcome.became.value] += 1
        counts[_ACCEPTED] += outcome.accepted
    few = bounded(groups)
    yield Gauge(
        "triage_outcome_labels",
        "Labels that were written or only suggested, by what became of them.",
        [
            (_named(names, origin=origin, became=kind.value), few[names][origin, kind.value])
            for names in few
            for origin in ("written", "suggested")
            for kind in Became
        ],
    )
    yield Gauge(
        "triage_outcome_accepted_labels",
        "Labels that a person's act stands behind.",
        [(_named(names), counts[_ACCEPTED]) for names, counts in few.items()],
    )
    yield from _totals(report)


def _origin(mark: Mark) -> str:
    return "suggested" if mark.write is None else "written"


def _named(names: Names, **more: str) -> dict[str, str]:
    return dict(zip(("label", "component"), names, strict=True)) | more


def _totals(report: Report) -> Iterator[Gauge]:
    yield _total("model_cost_micros", "What all calls of models cost.", report.cost_micros)
    if report.cost_each_micros is not None:
        each = "What they cost for each accepted label."
        yield _total("cost_per_accepted_label_micros", each, report.cost_each_micros)
    since = "From when on labels are counted."
    yield _total("since_timestamp_seconds", since, round(report.since.timestamp()))
    runs = "Whether what runs only suggested is counted."
    yield _total("runs_read", runs, report.knows_runs)


def _total(name: str, what: str, value: float) -> Gauge:
    return Gauge(f"triage_outcome_{name}", what, [({}, value)])
