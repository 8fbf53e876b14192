"""Reads from a tracker what an undo did, by the events that are its own.

Why it exists: that a label is not on the issue does not say who took it off, and an undo that was
cut short took some off and not others. Neither may be told as its opposite.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from triage.storage.operations import OperationRecord
from triage.trackers.abilities import CanUndo, LabelEvent
from triage.trackers.base import (
    IssueNotFound,
    TrackedIssue,
    Tracker,
    TrackerRefused,
    TrackerTimeout,
    label_key,
)
from triage.trackers.reading import read_issue
from triage.trackers.undo_plan import APPLIED, CLOCKS_DIFFER, target_of

PARTLY: Final = "partly_taken_off"
"""How the receipt of an undo says that it took some of its labels off and left others."""


@dataclass(frozen=True, kw_only=True)
class UndoReading:
    """What an undo has done to an issue.

    Attributes:
        issue: as it is now.
        taken: the labels that this undo took off, whatever became of them since.
        left: the other ones that are on the issue.
    """

    issue: TrackedIssue
    taken: tuple[str, ...]
    left: tuple[str, ...]

    @property
    def effect(self) -> Literal["taken_off", "partly_taken_off"] | None:
        """How the undo shows, or None if it took nothing off."""
        if not self.taken:
            return None
        return PARTLY if self.left else "taken_off"


async def read_undo(
    record: OperationRecord, tracker: Tracker, *, timeout_seconds: float
) -> UndoReading:
    """Read what an undo did.

    Raises:
        TrackerRefused: the tracker does not tell whose the events are; or as `read_issue` does.
        TrackerTimeout: likewise.
        TrackerUnavailable: likewise.
    """
    if not isinstance(tracker, CanUndo):
        raise TrackerRefused("forbidden", "the tracker does not tell who took a label off")
    _, repository, number = target_of(record)
    issue = await read_issue(tracker, repository, number, timeout_seconds=timeout_seconds)
    try:
        async with asyncio.timeout(timeout_seconds):
            events = await tracker.label_events(repository, number)
    except TimeoutError:
        raise TrackerTimeout("the events could not be read in time") from None
    if isinstance(events, IssueNotFound):
        raise TrackerRefused(events.code, "the tracker has no such issue")
    taken = taken_by(record, events)
    on = set(map(label_key, issue.labels))
    left = tuple(x for x in record.labels if label_key(x) in on and x not in taken)
    return UndoReading(issue=issue, taken=taken, left=left)


def taken_by(record: OperationRecord, events: Sequence[LabelEvent]) -> tuple[str, ...]:
    """Return which of its labels an undo took off, by its own events (pure)."""
    own = {label_key(event.label) for event in events if _did(record, event)}
    return tuple(label for label in record.labels if label_key(label) in own)


def is_partly_done(record: OperationRecord) -> bool:
    """Whether an undo is settled with some labels off and others left."""
    return record.state in APPLIED and how_of(record.receipt) == PARTLY


def how_of(receipt: bytes | None) -> str | None:
    """Return how the effect of a settled write was seen, if its receipt says so."""
    try:
        how = json.loads(receipt or b"")["how"]
    except (ValueError, KeyError, TypeError):
        return None
    return how if isinstance(how, str) else None


def _did(record: OperationRecord, event: LabelEvent) -> bool:
    if event.added or not event.ours:
        return False
    if event.operation_key is not None:
        return event.operation_key == record.operation_key
    if record.dispatched_at is None:
        return False
    # Nothing is sent once the lease is over.
    since, until = record.dispatched_at - CLOCKS_DIFFER, record.lease_until + CLOCKS_DIFFER
    return since <= event.at <= until
