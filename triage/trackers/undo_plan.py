"""What an undo would take off an issue: of one write, exactly what it added and is still ours.

Why it exists: whoever undoes a write must see what that does before it does it, and may not touch
what anybody else put there. Nothing here changes anything.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from triage.storage.operations import OperationRecord
from triage.storage.transitions import OperationState
from triage.trackers.abilities import LabelEvent, OwnWrite, UndoableTracker
from triage.trackers.base import (
    IssueNotFound,
    TrackedIssue,
    Tracker,
    TrackerError,
    TrackerRefused,
    TrackerTimeout,
    label_key,
)

APPLIED: Final = frozenset({OperationState.APPLIED, OperationState.RECONCILED_APPLIED})
ADDS: Final = "apply_labels"
"""The type of operation that an undo takes back."""
UNDOES: Final = "undo_labels"
"""The type of operation that an undo is; its arguments are the key of what it takes back."""
CLOCKS_DIFFER: Final = timedelta(seconds=60)
"""By so much a tracker's clock may differ from the database's."""


class CannotUndo(TrackerError):  # noqa: N818 - names the fault, as the others do
    """The write, or its tracker, is none that can be undone."""


class Fate(StrEnum):
    """What an undo would do with a label of the write, in the words that people are shown."""

    TAKE_OFF = "taken off"
    GONE = "not on the issue any more"
    NOT_OURS = "left: somebody put it on, before the write or since"


@dataclass(frozen=True, kw_only=True)
class UndoPlan:
    """What an undo would do now.

    Attributes:
        record: the write.
        issue: as it is now.
        fates: what would become of each of its labels.
    """

    record: OperationRecord
    issue: TrackedIssue
    fates: Mapping[str, Fate]

    @property
    def taking_off(self) -> tuple[str, ...]:
        """The labels that would be taken off."""
        return tuple(label for label, fate in self.fates.items() if fate is Fate.TAKE_OFF)


def target_of(record: OperationRecord) -> tuple[str, str, str]:
    """Return the tracker, the repository and the issue of a write.

    Raises:
        CannotUndo: its row does not say it.
    """
    try:
        target = json.loads(record.target)
        return str(target["tracker"]), str(target["repository"]), str(target["issue"])
    except (ValueError, TypeError, KeyError):
        raise CannotUndo("its row does not say where it went: somebody edited it") from None


def own_write(record: OperationRecord) -> OwnWrite:
    """Return what a tracker knows a write by: its key, and between which times it was sent."""
    sent = record.dispatched_at or record.created_at
    return OwnWrite(
        operation_key=record.operation_key,
        since=sent - CLOCKS_DIFFER,
        until=record.updated_at + CLOCKS_DIFFER,
    )


async def plan_undo(
    record: OperationRecord, trackers: Mapping[str, Tracker], *, timeout_seconds: float
) -> UndoPlan:
    """Read the issue of a write, and say what an undo of it would do.

    Raises:
        CannotUndo: the write did not happen, or its tracker cannot tell whose a label is.
        TrackerError: the issue cannot be read.
    """
    tracker = undoing_tracker(record, trackers)
    _, repository, number = target_of(record)
    try:
        async with asyncio.timeout(timeout_seconds):
            issue = await tracker.get_issue(repository, number)
            events = await tracker.label_events(repository, number)
    except TimeoutError:
        raise TrackerTimeout("the issue could not be read in time") from None
    if isinstance(issue, IssueNotFound) or isinstance(events, IssueNotFound):
        code = issue.code if isinstance(issue, IssueNotFound) else "issue_not_found"
        raise TrackerRefused(code, "the tracker has no such issue")
    return UndoPlan(record=record, issue=issue, fates=fates_of(record, issue.labels, events))


def undoing_tracker(record: OperationRecord, trackers: Mapping[str, Tracker]) -> UndoableTracker:
    """Return the tracker of a write that was applied.

    Raises:
        CannotUndo: it was not, or that tracker cannot undo or is not set up here.
    """
    if record.operation_type == UNDOES:
        raise CannotUndo("it is an undo itself: whoever wants its labels puts them on by hand")
    if record.operation_type != ADDS or record.state not in APPLIED:
        raise CannotUndo(f"the write is {record.state.value}: there is nothing to undo")
    tracker = trackers.get(target_of(record)[0])
    if tracker is None:
        raise CannotUndo("the write went to a tracker that is not set up here")
    if not isinstance(tracker, UndoableTracker):
        raise CannotUndo("its tracker does not tell who put a label on")
    return tracker


def fates_of(
    record: OperationRecord, labels: Sequence[str], events: Sequence[LabelEvent]
) -> dict[str, Fate]:
    """Say what would become of each label of a write (pure).

    A label is ours if the last thing that happened to it is that this very write put it on.
    """
    on = set(map(label_key, labels))
    last = {label_key(event.label): event for event in events}
    write = own_write(record)
    return {label: _fate(label_key(label), on, last, write) for label in record.labels}


def _fate(key: str, on: set[str], last: Mapping[str, LabelEvent], write: OwnWrite) -> Fate:
    if key not in on:
        return Fate.GONE
    event = last.get(key)
    return Fate.TAKE_OFF if event is not None and write.did(event) else Fate.NOT_OURS
