"""Reads from a tracker what became of a write, within a bounded time.

Why it exists: an uncertain write is settled by reading, whoever does it: the attempt that comes
next, the sweeper or a person. What a reading proves is said here once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, runtime_checkable

from triage.trackers.abilities import inventory_of
from triage.trackers.base import (
    IssueNotFound,
    LabelPresence,
    TrackedIssue,
    Tracker,
    TrackerRefused,
    TrackerTimeout,
)
from triage.trackers.inventory import Inventory

Effect = Literal["readback", "removed_by_person"]
Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """An issue, and where each label of a write stands on it."""

    issue: TrackedIssue
    labels: tuple[str, ...]
    places: tuple[LabelPresence, ...]

    @property
    def removed(self) -> bool:
        """Whether a person took one of the labels off."""
        return LabelPresence.REMOVED_BY_PERSON in self.places

    @property
    def missing(self) -> tuple[str, ...]:
        """The labels that are neither there nor were taken off."""
        return tuple(
            label
            for label, place in zip(self.labels, self.places, strict=True)
            if place is LabelPresence.ABSENT
        )

    @property
    def is_begun(self) -> bool:
        """Whether any label is there or was taken off: a write of them may have done that."""
        return len(self.missing) < len(self.labels)

    @property
    def effect(self) -> Effect | None:
        """How the write shows, or None if a label is not there and was not taken off.

        None proves that nothing happened only after the quiet period.
        """
        if self.missing:
            return None
        return "removed_by_person" if self.removed else "readback"


@dataclass(frozen=True, kw_only=True)
class Overview(Reading):
    """A reading with the labels that the repository has: what is looked at before a write."""

    inventory: Inventory


@runtime_checkable
class HasOverview(Protocol):
    """A tracker that gives an overview by one look, and not by one look for each part of it."""

    async def overview(
        self, repository: str, number: str, labels: Sequence[str]
    ) -> Overview | IssueNotFound:
        """Return the issue, where `labels` stand on it, and the labels of its repository."""
        ...


async def read_issue(
    tracker: Tracker, repository: str, number: str, *, timeout_seconds: float
) -> TrackedIssue:
    """Return the issue as it is now.

    Raises:
        TrackerRefused: there is no such issue (``issue_not_found``, or what became of it), or we
            may not read it.
        TrackerTimeout: no answer within `timeout_seconds`.
        TrackerUnavailable: the tracker failed.
    """
    try:
        async with asyncio.timeout(timeout_seconds):
            return found(await tracker.get_issue(repository, number))
    except TimeoutError:
        raise TrackerTimeout("the issue could not be read in time") from None


async def read_labels(
    tracker: Tracker,
    repository: str,
    number: str,
    labels: Sequence[str],
    *,
    timeout_seconds: float,
) -> Reading:
    """Return the issue and where `labels` stand on it; raises what `read_issue` raises."""
    issue = await read_issue(tracker, repository, number, timeout_seconds=timeout_seconds)
    try:
        async with asyncio.timeout(timeout_seconds):
            places = found(await tracker.label_presence(repository, number, labels))
    except TimeoutError:
        raise TrackerTimeout("the labels could not be read in time") from None
    return Reading(issue=issue, labels=tuple(labels), places=places)


async def overview_of(
    tracker: Tracker, repository: str, number: str, labels: Sequence[str]
) -> Overview | IssueNotFound:
    """Return the issue, where `labels` stand on it, and the labels of its repository.

    Raises:
        TrackerError: one of it cannot be read; no time is kept.
    """
    if isinstance(tracker, HasOverview):
        return await tracker.overview(repository, number, labels)
    if isinstance(issue := await tracker.get_issue(repository, number), IssueNotFound):
        return issue
    places = await tracker.label_presence(repository, number, labels)
    if isinstance(places, IssueNotFound):
        return places
    inventory = await inventory_of(tracker, issue.repository)
    return Overview(issue=issue, labels=tuple(labels), places=places, inventory=inventory)


def found(answer: Found | IssueNotFound) -> Found:
    """Return what a tracker has found.

    Raises:
        TrackerRefused: there is no such issue (``issue_not_found``, or what became of it).
    """
    if isinstance(answer, IssueNotFound):
        raise TrackerRefused(answer.code, "the tracker has no such issue")
    return answer
