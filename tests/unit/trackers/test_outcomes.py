"""What became of a label, by what people did; that it is there proves nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from triage.trackers.abilities import LabelEvent, OwnWrite
from triage.trackers.outcomes import Became, Mark, Outcome, component_of, outcome_of

SENT = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
WRITE = OwnWrite(
    operation_key="op_1", since=SENT - timedelta(minutes=1), until=SENT + timedelta(minutes=2)
)
Step = tuple[int, str, str, str]


def _events(*steps: Step) -> list[LabelEvent]:
    """Each step is minutes after the write, the label, added or removed, and by whom."""
    return [
        LabelEvent(
            label=label,
            added=what == "added",
            ours=who == "us",
            at=SENT + timedelta(minutes=minutes),
        )
        for minutes, label, what, who in steps
    ]


def _mark(*, written: bool, by_person: bool = True) -> Mark:
    return Mark(
        workflow_id="w",
        tracker="t",
        repository="r",
        issue="1",
        label="bug",
        component="",
        at=SENT,
        beside=("bug", "component:api"),
        write=WRITE if written else None,
        by_person=by_person,
    )


OURS: Step = (0, "Bug", "added", "us")
OFF: Step = (60, "bug", "removed", "ann")
WRITTEN: dict[str, tuple[list[Step], list[str], Outcome]] = {
    "nobody touched it": ([OURS], ["bug"], Outcome(Became.RETAINED, accepted=True)),
    "a person took it off": ([OURS, OFF], [], Outcome(Became.REMOVED)),
    "and put another on": (
        [OURS, OFF, (61, "feature", "added", "ann")],
        ["feature"],
        Outcome(Became.CHANGED),
    ),
    "another before they took it off": (
        [OURS, (59, "feature", "added", "ann"), OFF],
        ["feature"],
        Outcome(Became.CHANGED),
    ),
    "and put it on again": (
        [OURS, OFF, (70, "bug", "added", "ann")],
        ["bug"],
        Outcome(Became.RETAINED, accepted=True),
    ),
    "it was undone": ([OURS, (60, "bug", "removed", "us")], [], Outcome(Became.REVERTED)),
    "it is there without our event": (
        [(-90, "bug", "added", "ann")],
        ["bug"],
        Outcome(Became.UNKNOWN),
    ),
    "it is gone without an event": ([OURS], [], Outcome(Became.UNKNOWN)),
    "events and issue disagree": ([OURS, OFF], ["bug"], Outcome(Became.UNKNOWN)),
}
SUGGESTED: dict[str, tuple[list[Step], list[str], Outcome]] = {
    "a person put it on": (
        [(5, "bug", "added", "ann")],
        ["bug"],
        Outcome(Became.RETAINED, accepted=True),
    ),
    "it was there before": ([(-5, "bug", "added", "ann")], ["bug"], Outcome(Became.UNKNOWN)),
    "nobody did anything": ([], [], Outcome(Became.UNKNOWN)),
    "a person chose another": (
        [(5, "feature", "added", "ann")],
        ["feature"],
        Outcome(Became.CHANGED),
    ),
    "a person took another of its labels up": (
        [(5, "component:api", "added", "ann")],
        ["component:api"],
        Outcome(Became.UNKNOWN),
    ),
    "a person thought again": (
        [(5, "bug", "added", "ann"), (9, "bug", "removed", "ann")],
        [],
        Outcome(Became.REMOVED),
    ),
    "only we put it on": ([(5, "bug", "added", "us")], ["bug"], Outcome(Became.RETAINED)),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_a_written_label_is_judged_by_what_came_after(case: str) -> None:
    """Only what happened after that very write counts, and the last of it."""
    steps, labels, expected = WRITTEN[case]
    assert expected == outcome_of(_mark(written=True), labels, _events(*steps))


@pytest.mark.parametrize("case", SUGGESTED)
def test_a_suggestion_is_judged_by_what_people_did(case: str) -> None:
    """That the label is there is no acceptance: a person must have put it on afterwards."""
    steps, labels, expected = SUGGESTED[case]
    assert expected == outcome_of(_mark(written=False), labels, _events(*steps))


def test_what_no_person_approved_is_not_accepted_by_being_there() -> None:
    """An approval that came with the start is nobody's act."""
    mark = _mark(written=True, by_person=False)
    assert Outcome(Became.RETAINED) == outcome_of(mark, ["bug"], _events(OURS))


def test_a_component_is_told_by_its_label() -> None:
    """The first label that names one counts."""
    assert "component:api" == component_of(["bug", "component:api", "area/x"])
    assert "" == component_of(["bug", "components"])
