"""What became of a label that was written or suggested, by the events of its issue. Pure.

Why it exists: what a suggestion was worth is known days later, and only by what people did. That a
label is on an issue proves nothing by itself: somebody may have put it there without us, or nobody
has looked. So a label counts as accepted only where a person's act stands behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from triage.trackers.abilities import LabelEvent, OwnWrite
from triage.trackers.base import label_key


class Became(StrEnum):
    """What became of a label."""

    RETAINED = "retained"
    """It is on the issue, since this write or since a person put it on."""
    REMOVED = "removed"
    """A person took it off."""
    CHANGED = "changed"
    """A person took it off, or did not take it up, and put another one on."""
    REVERTED = "reverted"
    """It was undone through us."""
    UNKNOWN = "unknown"
    """It cannot be read, or nothing says that anybody looked."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A label that was written or suggested.

    Attributes:
        workflow_id: the run.
        tracker: where the issue lives.
        repository: likewise.
        issue: its number.
        label: the label.
        component: the label of the same answer that names a component; empty if none does.
        beside: the labels of the same answer: taking one of them up corrects none of the others.
        at: when it was sent or suggested.
        write: the write that put it on; None for what was only suggested.
        by_person: whether a named person approved the write.
    """

    workflow_id: str
    tracker: str
    repository: str
    issue: str
    label: str
    component: str
    at: datetime
    beside: tuple[str, ...] = ()
    write: OwnWrite | None = None
    by_person: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a mark, and whether a person's act stands behind its being there."""

    became: Became
    accepted: bool = False


NOT_KNOWN = Outcome(Became.UNKNOWN)


def outcome_of(mark: Mark, labels: Sequence[str], events: Sequence[LabelEvent]) -> Outcome:
    """Say what became of a mark.

    Args:
        mark: the label.
        labels: those that are on its issue now.
        events: what happened to labels there, oldest first, all of it.
    """
    is_on = label_key(mark.label) in set(map(label_key, labels))
    if mark.write is None:
        return _of_suggestion(mark, is_on, [event for event in events if event.at >= mark.at])
    written = [n for n, event in enumerate(events) if _is_write(mark, mark.write, event)]
    if not written:
        # It was there before, or goes by another name: nothing tells whose it is.
        return NOT_KNOWN
    return _of_write(mark, is_on, events[written[-1] + 1 :])


def _is_write(mark: Mark, write: OwnWrite, event: LabelEvent) -> bool:
    return _is_same(mark, event) and write.did(event)


def _of_write(mark: Mark, is_on: bool, later: Sequence[LabelEvent]) -> Outcome:  # noqa: FBT001 - private
    mine = [n for n, event in enumerate(later) if _is_same(mark, event)]
    if not mine:
        kept = Outcome(Became.RETAINED, accepted=mark.by_person)
        return kept if is_on else NOT_KNOWN
    last = later[mine[-1]]
    if last.added != is_on:
        return NOT_KNOWN
    if last.added:
        return Outcome(Became.RETAINED, accepted=not last.ours)
    if last.ours:
        return Outcome(Became.REVERTED)
    others = any(_is_correction(mark, event) for event in later)
    return Outcome(Became.CHANGED if others else Became.REMOVED)


def _of_suggestion(mark: Mark, is_on: bool, later: Sequence[LabelEvent]) -> Outcome:  # noqa: FBT001 - private
    mine = [event for event in later if _is_same(mark, event)]
    others = any(_is_correction(mark, event) for event in later)
    if not mine:
        return Outcome(Became.CHANGED) if others and not is_on else NOT_KNOWN
    last = mine[-1]
    if last.added != is_on:
        return NOT_KNOWN
    if last.added:
        return Outcome(Became.RETAINED, accepted=not last.ours)
    if last.ours:
        return Outcome(Became.REVERTED)
    return Outcome(Became.CHANGED if others else Became.REMOVED)


def _is_same(mark: Mark, event: LabelEvent) -> bool:
    return label_key(event.label) == label_key(mark.label)


def _is_correction(mark: Mark, event: LabelEvent) -> bool:
    """Whether a person put another label on than those that were answered."""
    answered = {label_key(mark.label), *map(label_key, mark.beside)}
    return event.added and not event.ours and label_key(event.label) not in answered


def component_of(labels: Sequence[str]) -> str:
    """Return the first of some labels that names a component; empty if none does."""
    prefixes = ("component:", "component/", "area:", "area/")
    return next((x for x in labels if x.lower().startswith(prefixes)), "")
