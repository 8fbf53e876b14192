"""What an undo needs of the local tracker: who did what to labels, and one of ours taken off."""

from __future__ import annotations

from sqlalchemy import delete

from triage.storage.schema import tracker_issue_labels
from triage.trackers.abilities import LabelEvent, OwnWrite, Removal
from triage.trackers.base import IssueNotFound
from triage.trackers.local_people import LocalIssues, require_issue
from triage.trackers.local_rows import (
    IssueEvent,
    add_event,
    events_of,
    find_issue,
    known_labels,
    label_key,
    labels_on,
)

ACTOR = "bounded-triage"


class LocalUndo(LocalIssues):
    """The part of the local tracker that is `CanUndo`."""

    async def label_events(
        self, repository: str, number: str
    ) -> tuple[LabelEvent, ...] | IssueNotFound:
        """Return what happened to the labels of an issue, oldest first."""
        async with self._read() as connection:
            row = await find_issue(connection, repository, number)
            if row is None:
                return IssueNotFound(repository=repository, number=number)
            events = await events_of(connection, row["issue_key"])
        return tuple(_to_event(event, event.label) for event in events if event.label is not None)

    async def remove_own_label(
        self, repository: str, number: str, label: str, write: OwnWrite, *, operation_key: str
    ) -> Removal:
        """Take off a label that `write` put on, if it is still ours; see `CanUndo`.

        Raises:
            TrackerRefused: there is no such issue (``issue_not_found``).
            TrackerUnavailable: its `effect_possible` says whether it may be off.
        """
        async with self._write(cancelled_is_undone=True) as connection:
            issue = (await require_issue(connection, repository, number))["issue_key"]
            key = label_key(repository, label)
            if key not in {on.key for on in await labels_on(connection, issue)}:
                return Removal.NOT_THERE
            last = [e for e in await events_of(connection, issue) if _is_about(e, repository, key)]
            if not last or not write.did(_to_event(last[-1], label)):
                return Removal.NOT_OURS
            on = tracker_issue_labels.c
            mine = (on.issue_key == issue, on.label_key == key)
            await connection.execute(delete(tracker_issue_labels).where(*mine))
            known = (await known_labels(connection, repository, [label]))[key]
            event = IssueEvent(
                action="removed",
                label=known.name,
                by=ACTOR,
                at=await self._store.now(connection),
                operation_key=operation_key,
            )
            await add_event(connection, issue, event, known)
            return Removal.REMOVED


def _is_about(event: IssueEvent, repository: str, key: str) -> bool:
    return event.label is not None and label_key(repository, event.label) == key


def _to_event(event: IssueEvent, label: str) -> LabelEvent:
    return LabelEvent(
        label=label,
        added=event.action == "added",
        ours=event.operation_key is not None,
        at=event.at,
        operation_key=event.operation_key,
    )
