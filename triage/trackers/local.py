"""A tracker of our own: issues, labels and a log of events, in tables beside the store's.

Why it exists: everything can be tried without an account anywhere. It stands for the far end of the
wire: its transactions are its own, and nothing of the ledger is in them. A label is the same
whatever the letter case of its name. NUL and lone surrogates in texts come back exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from triage.storage.connections import AsyncConnection
from triage.trackers.base import (
    MAX_LABELS,
    IssueNotFound,
    LabelPresence,
    LabelRefusal,
    LabelResult,
    LabelsAdded,
    LabelStatus,
    TrackedIssue,
    TrackerRefused,
    is_label,
)
from triage.trackers.inventory import LABEL_CHANGED, RepositoryLabel
from triage.trackers.listing import IssuePage, Listed, ListedRepository
from triage.trackers.local_listing import is_known, local_page
from triage.trackers.local_people import checked_label, require_issue
from triage.trackers.local_rows import (
    IssueEvent,
    Label,
    add_events,
    find_issue,
    has_labels,
    insert_issue,
    insert_label,
    inventory,
    label_key,
    labels_of,
    labels_on,
    put_on,
    removed_from,
    to_issue,
)
from triage.trackers.local_undo import LocalUndo
from triage.trackers.reading import Overview


class LocalTracker(LocalUndo):
    """The `Tracker` over our own tables; what people do with it comes from `LocalIssues`."""

    async def admit_issue(
        self,
        repository: str,
        number: str,
        *,
        title: str,
        body: str,
        author: str | None = None,
        labels: Sequence[str] = (),
    ) -> TrackedIssue:
        """Return the issue; one that is not known yet is registered with this text.

        What is there already stays as it is. `labels` become the repository's inventory if it has
        none, so that a label which was taken out of it is never created again.
        """
        issue = {
            "repository": repository,
            "number": number,
            "title": title,
            "body": body,
            "author": author or "",
        }
        async with self._write() as connection:
            now = await self._store.now(connection)
            new = await insert_issue(connection, issue, author or "", now)
            if labels and not await has_labels(connection, repository):
                for name in labels:
                    await insert_label(connection, repository, checked_label(name), now)
            if new is not None:
                return new
            row = await require_issue(connection, repository, number)
            return to_issue(row, await labels_on(connection, row["issue_key"]))

    async def get_issue(self, repository: str, number: str) -> TrackedIssue | IssueNotFound:
        """Return the issue as it is now."""
        async with self._read() as connection:
            row = await find_issue(connection, repository, number)
            if row is None:
                return IssueNotFound(repository=repository, number=number)
            return to_issue(row, await labels_on(connection, row["issue_key"]))

    async def label_inventory(self, repository: str) -> tuple[str, ...]:
        """Return the labels that exist in a repository, sorted by name."""
        async with self._read() as connection:
            return inventory(await labels_of(connection, repository)).names

    async def labels_by_id(self, repository: str) -> tuple[RepositoryLabel, ...]:
        """Return the labels of a repository with their ids."""
        async with self._read() as connection:
            return inventory(await labels_of(connection, repository)).labels

    async def label_presence(
        self, repository: str, number: str, labels: Sequence[str]
    ) -> tuple[LabelPresence, ...] | IssueNotFound:
        """Say for each label where it stands on the issue."""
        seen = await self.overview(repository, number, labels)
        return seen if isinstance(seen, IssueNotFound) else seen.places

    async def overview(
        self, repository: str, number: str, labels: Sequence[str]
    ) -> Overview | IssueNotFound:
        """Return the issue, where `labels` stand on it, and the labels of its repository."""
        async with self._read() as connection:
            row = await find_issue(connection, repository, number)
            if row is None:
                return IssueNotFound(repository=repository, number=number)
            on = await labels_on(connection, row["issue_key"])
            removed = await removed_from(connection, row["issue_key"])
            there = inventory(await labels_of(connection, repository))
        return Overview(
            issue=to_issue(row, on),
            labels=tuple(labels),
            places=_places(repository, labels, on, removed),
            inventory=there,
        )

    async def repository(self, repository: str) -> ListedRepository:
        """Return a repository: its name is its id.

        Raises:
            TrackerRefused: nothing is in it (``repository_not_found``), as in one that is misspelt.
        """
        async with self._read() as connection:
            if not await is_known(connection, repository):
                raise TrackerRefused("repository_not_found", "no issue and no label is in it")
        return ListedRepository(id=repository, name=repository)

    async def issue_page(
        self, repository: str, listed: Listed, page: Mapping[str, str] | None = None
    ) -> IssuePage:
        """Return a page of a repository's issues."""
        async with self._read() as connection:
            return await local_page(connection, repository, listed, page)

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
        """Add labels, and do nothing else: see `Tracker.add_labels` and `HasLabelIds`.

        A call that is cancelled before its commit was rolled back, and says so.
        """
        async with self._write(cancelled_is_undone=True) as connection:
            row = await require_issue(connection, repository, number)
            if row["locked"]:
                raise TrackerRefused("issue_locked", "the issue is locked")
            there = await labels_of(connection, repository)
            if pinned and (change := inventory(there).change(pinned)):
                raise TrackerRefused(LABEL_CHANGED, change.value)
            known = {label.key: label for label in there}
            keys = [label_key(repository, name) if is_label(name) else "" for name in labels]
            asked = [(name, known.get(key)) for name, key in zip(labels, keys, strict=True)]
            if any(label is None for _, label in asked):
                return LabelsAdded(results=tuple(_not_attempted(*pair) for pair in asked))
            now = await self._store.now(connection)
            adding = _Adding(connection, row["issue_key"], by, operation_key, now)
            return await adding.add([label for _, label in asked if label is not None])


class _Adding:
    """One call that adds labels, all of them known, to one locked issue."""

    def __init__(
        self, connection: AsyncConnection, key: str, by: str, operation_key: str, now: datetime
    ) -> None:
        self._connection = connection
        self._key = key
        self._by = by
        self._operation_key = operation_key
        self._now = now

    async def add(self, labels: Sequence[Label]) -> LabelsAdded:
        """Put on what is not there and was not taken off by a person."""
        present = {label.key for label in await labels_on(self._connection, self._key)}
        removed = await removed_from(self._connection, self._key)
        wanted = {label.key: label for label in labels if label.key not in present | removed}
        if wanted and len(present) + len(wanted) > MAX_LABELS:
            raise TrackerRefused("too_many_labels", "the issue would have over 100 labels")
        results = []
        for label in labels:
            results.append(_result(label, _presence(label.key, present, removed)))
            present.add(label.key)
        if wanted:
            await self._put_on([*wanted.values()])
        return LabelsAdded(results=tuple(results))

    async def _put_on(self, labels: Sequence[Label]) -> None:
        await put_on(self._connection, self._key, labels, self._now)
        events = [(self._added(label), label) for label in labels]
        await add_events(self._connection, self._key, events)

    def _added(self, label: Label) -> IssueEvent:
        return IssueEvent(
            action="added",
            label=label.name,
            by=self._by,
            at=self._now,
            operation_key=self._operation_key,
        )


def _result(label: Label, presence: LabelPresence) -> LabelResult:
    match presence:
        case LabelPresence.PRESENT:
            return LabelResult(label=label.name, status=LabelStatus.ALREADY_PRESENT)
        case LabelPresence.REMOVED_BY_PERSON:
            return _refused(label.name, LabelRefusal.REMOVED_BY_PERSON)
        case LabelPresence.ABSENT:
            return LabelResult(label=label.name, status=LabelStatus.ADDED)


def _places(
    repository: str, labels: Sequence[str], on: Sequence[Label], removed: set[str]
) -> tuple[LabelPresence, ...]:
    present = {label.key for label in on}
    return tuple(_presence(label_key(repository, name), present, removed) for name in labels)


def _presence(key: str, present: set[str], removed: set[str]) -> LabelPresence:
    if key in present:
        return LabelPresence.PRESENT
    return LabelPresence.REMOVED_BY_PERSON if key in removed else LabelPresence.ABSENT


def _not_attempted(name: str, label: Label | None) -> LabelResult:
    if label is None:
        return _refused(name, LabelRefusal.UNKNOWN_LABEL)
    return _refused(label.name, LabelRefusal.NOT_ATTEMPTED)


def _refused(name: str, refusal: LabelRefusal) -> LabelResult:
    return LabelResult(label=name, status=LabelStatus.REFUSED, refusal=refusal)
