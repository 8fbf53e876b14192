"""What a tracker may be able to do beyond `Tracker`; whoever needs it asks whether it can.

Why it exists: a tracker is one file, and one that has no files or no ids of labels is a tracker,
too. What such a one does not show is unknown, never assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

from triage.policy.codeowners import CodeOwners
from triage.trackers.base import IssueNotFound, LabelsAdded, Tracker
from triage.trackers.inventory import Inventory, RepositoryLabel


@dataclass(frozen=True, kw_only=True)
class FetchedOwners:
    """A CODEOWNERS file, and where it stands.

    Attributes:
        owners: the file, read; of a repository without one, nobody owns anything.
        path: where it is in the repository; None if there is none.
        sha: the commit that it was read from.
        unresolved: line and name of each owner whom the tracker does not know, or who may not
            write; a line alone stands for all of its owners. None where the tracker does not say.
    """

    owners: CodeOwners
    path: str | None
    sha: str
    unresolved: frozenset[tuple[int, str]] | None = None

    def is_unresolved(self, line: int | None, owner: str) -> bool:
        """Whether the tracker says that it does not know an owner of a line."""
        found = self.unresolved or frozenset()
        return line is not None and not found.isdisjoint({(line, ""), (line, owner.casefold())})


@runtime_checkable
class KeepsTurns(Protocol):
    """A tracker that keeps its writes apart, so that one may have to wait for its turn."""

    def seconds_to_turn(self, operation_key: str) -> float | None:
        """Keep a turn for a write, and say in how many seconds it is; None if it is too far away.

        Asking again, and writing, is about the turn that was kept.
        """


@runtime_checkable
class HasFiles(Protocol):
    """A tracker beside which the repository's files are."""

    async def codeowners(self, repository: str) -> FetchedOwners:
        """Return the repository's CODEOWNERS file as its default branch has it now.

        Raises:
            TrackerError: whether there is one cannot be said.
        """
        ...


@runtime_checkable
class HasLabelIds(Protocol):
    """A tracker whose labels have ids, which no rename changes and no other label gets."""

    async def labels_by_id(self, repository: str) -> tuple[RepositoryLabel, ...]:
        """Return the labels of a repository with their ids, all of them or none.

        Raises:
            TrackerError: they cannot be read, or not to their end.
        """
        ...

    async def add_labels(
        self,
        repository: str,
        number: str,
        labels: Sequence[str],
        *,
        by: str,
        operation_key: str,
        pinned: Mapping[str, str] | None = None,
    ) -> LabelsAdded:
        """Do what `Tracker.add_labels` does, if the labels still have these ids.

        Raises:
            TrackerRefused: one does not (``label_changed``), and nothing was done.
        """
        ...


async def inventory_of(tracker: Tracker, repository: str) -> Inventory:
    """Return the labels of a repository, with their ids where its tracker has them.

    Raises:
        TrackerError: they cannot be read, or not to their end.
    """
    if isinstance(tracker, HasLabelIds):
        return Inventory(await tracker.labels_by_id(repository))
    names = await tracker.label_inventory(repository)
    return Inventory((RepositoryLabel("", name) for name in names), has_ids=False)


@dataclass(frozen=True, kw_only=True)
class LabelEvent:
    """Something that happened to a label on an issue.

    Attributes:
        label: its name then.
        added: whether it was put on; else it was taken off.
        ours: whether this system did it.
        at: when, by the tracker's clock.
        operation_key: the write that did it, where the tracker keeps that.
    """

    label: str
    added: bool
    ours: bool
    at: datetime
    operation_key: str | None = None


class Removal(StrEnum):
    """What became of a label that was to be taken off."""

    REMOVED = "removed"
    NOT_THERE = "not_there"
    NOT_OURS = "not_ours"
    """Somebody else put it on, before that write or again since."""


@dataclass(frozen=True, kw_only=True)
class OwnWrite:
    """A write of ours that put labels on an issue.

    Attributes:
        operation_key: the ledger's.
        since: when it was sent, less what the clocks may differ by.
        until: from when on it was over, and as much more; None if that is not known.
    """

    operation_key: str
    since: datetime
    until: datetime | None = None

    def did(self, event: LabelEvent) -> bool:
        """Whether the write is what happened there."""
        if not (event.added and event.ours):
            return False
        if event.operation_key is not None:
            return event.operation_key == self.operation_key
        return self.since <= event.at and (self.until is None or event.at <= self.until)


@runtime_checkable
class CanUndo(Protocol):
    """A tracker that tells who did what to labels, and takes one off that is still ours."""

    async def label_events(
        self, repository: str, number: str
    ) -> tuple[LabelEvent, ...] | IssueNotFound:
        """Return what happened to the labels of an issue, oldest first, all of it or none."""
        ...

    async def remove_own_label(
        self, repository: str, number: str, label: str, write: OwnWrite, *, operation_key: str
    ) -> Removal:
        """Take off a label that `write` put on, if it is still ours; for an undo alone.

        Args:
            repository: where the issue lives.
            number: the issue.
            label: its name; letter case does not matter.
            write: what put it on.
            operation_key: the undo, for the tracker's records.

        Raises:
            TrackerError: its kind says what is known of the effect, as with `add_labels`.
        """
        ...


@runtime_checkable
class UndoableTracker(Tracker, CanUndo, Protocol):
    """A tracker on which a write can be undone."""
