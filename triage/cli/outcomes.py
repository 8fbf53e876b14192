"""`triage outcomes`: what became of each label, and what an accepted one cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from triage.cli.errors import UnreachableError
from triage.cli.exposition import lines
from triage.cli.outcomes_report import Report, as_json, cost, gauges, rows
from triage.cli.output import NumbersFormat, put, put_json, put_table, say
from triage.cli.running import run
from triage.cli.stores import open_store
from triage.contracts.repositories import folded_repository
from triage.settings import load_settings
from triage.storage.engine import Store
from triage.storage.operations import OperationRecord
from triage.storage.outcome_rows import (
    added_by,
    applied_since,
    cost_since,
    is_by_person,
    some_days_ago,
)
from triage.trackers.abilities import CanUndo, LabelEvent
from triage.trackers.base import IssueNotFound, Tracker, TrackerError, label_key
from triage.trackers.factory import open_trackers
from triage.trackers.outcomes import NOT_KNOWN, Became, Mark, Outcome, component_of, outcome_of
from triage.trackers.undo_plan import ADDS, CannotUndo, own_write, target_of

READ_SECONDS: Final = 30.0
HEADERS: Final = ("LABEL", "COMPONENT", "WRITTEN", "SUGGESTED", *(b.upper() for b in Became))
WITHOUT_RUNS: Final = "Temporal does not answer: what runs only suggested is not counted"

Place = tuple[str, str, str]


def outcomes(days: float, format_: NumbersFormat, *, runs: bool) -> None:
    """Read back and print.

    Raises:
        RefusedError: there is no database.
        StorageError: it cannot be used.
    """
    report = run(_report(days, runs=runs))
    if format_ is NumbersFormat.JSON:
        put_json(as_json(report))
        return
    if runs and not report.knows_runs:
        say(WITHOUT_RUNS)
    if format_ is NumbersFormat.PROMETHEUS:
        put(*lines(gauges(report)))
    elif not report.outcomes:
        say("no label was written or suggested in that time")
    else:
        table = [tuple(map(str, row.values())) for row in rows(report.outcomes)]
        put_table((*HEADERS, "ACCEPTED"), table)
        put(cost(report))


async def _report(days: float, *, runs: bool) -> Report:
    settings = load_settings()
    async with open_store(create=False) as store:
        since = await some_days_ago(store, days)
        marks = await _written(store, since)
        suggested, knows = await _suggested(since) if runs else ([], False)
        marks += _only_suggested(suggested, marks)
        found = await _read(open_trackers(settings, store), marks)
        return Report(since, found, await cost_since(store, since), knows)


async def _written(store: Store, since: datetime) -> list[Mark]:
    """Return what writes put on, one mark a label."""
    marks: list[Mark] = []
    for record in await applied_since(store, ADDS, since):
        tracker, repository, issue = _target(record)
        by_person = await is_by_person(store, record)
        marks += [
            Mark(
                workflow_id=record.workflow_id,
                tracker=tracker,
                repository=repository,
                issue=issue,
                label=label,
                component=component_of(record.labels),
                at=record.dispatched_at or record.created_at,
                beside=record.labels,
                write=own_write(record),
                by_person=by_person,
            )
            for label in added_by(record)
        ]
    return marks


def _target(record: OperationRecord) -> Place:
    """Return where a write went; nowhere, if its row does not say it."""
    try:
        return target_of(record)
    except CannotUndo:
        return "", "", ""


async def _suggested(since: datetime) -> tuple[list[Mark], bool]:
    """Return what runs answered, and whether that is known: the ledger can be read without it."""
    # Only this loads a client.
    from triage.cli.outcomes_runs import suggestions  # noqa: PLC0415 - see above
    from triage.connection import ServerUnreachable  # noqa: PLC0415 - likewise

    try:
        return await suggestions(since), True
    except (UnreachableError, ServerUnreachable):
        return [], False


def _only_suggested(suggested: Iterable[Mark], written: Iterable[Mark]) -> list[Mark]:
    """Return the suggestions that nothing was written of; the latest of each on an issue."""
    known = {_identity(mark) for mark in written}
    latest = {_identity(mark): mark for mark in sorted(suggested, key=lambda mark: mark.at)}
    return [mark for identity, mark in latest.items() if identity not in known]


def _identity(mark: Mark) -> tuple[str, ...]:
    """Return what a mark is about; GitHub takes letters of either case for one repository."""
    repository = folded_repository(mark.repository)
    return mark.tracker, repository, mark.issue, label_key(mark.label)


def _place(mark: Mark) -> Place:
    return mark.tracker, mark.repository, mark.issue


async def _read(
    trackers: Mapping[str, Tracker], marks: Sequence[Mark]
) -> list[tuple[Mark, Outcome]]:
    """Read each issue once, one after the other; one that cannot be read is unknown."""
    seen: dict[Place, tuple[Sequence[str], Sequence[LabelEvent]] | None] = {}
    for mark in marks:
        if _place(mark) not in seen:
            seen[_place(mark)] = await _issue(trackers, _place(mark))
    return [(mark, _outcome(mark, seen[_place(mark)])) for mark in marks]


def _outcome(mark: Mark, seen: tuple[Sequence[str], Sequence[LabelEvent]] | None) -> Outcome:
    return NOT_KNOWN if seen is None else outcome_of(mark, *seen)


async def _issue(
    trackers: Mapping[str, Tracker], place: Place
) -> tuple[Sequence[str], Sequence[LabelEvent]] | None:
    name, repository, number = place
    tracker = trackers.get(name)
    if tracker is None or not isinstance(tracker, CanUndo):
        return None
    try:
        async with asyncio.timeout(READ_SECONDS):
            issue = await tracker.get_issue(repository, number)
            events = await tracker.label_events(repository, number)
    except (TrackerError, TimeoutError):
        return None
    if isinstance(issue, IssueNotFound) or isinstance(events, IssueNotFound):
        return None
    return issue.labels, events
