"""What adding labels to an issue on GitHub comes to, and what it came to. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from triage.trackers.base import (
    MAX_LABELS,
    LabelPresence,
    LabelRefusal,
    LabelResult,
    LabelsAdded,
    LabelStatus,
    TrackerRefused,
    TrackerUnavailable,
    label_key,
)
from triage.trackers.github_models import Issue, Label
from triage.trackers.github_names import is_label_name
from triage.trackers.inventory import LABEL_CHANGED, Inventory, RepositoryLabel


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to send for some labels, and what to answer if that works.

    Attributes:
        outcome: one result a label.
        wanted: the labels to send, as the repository has them.
    """

    outcome: LabelsAdded
    wanted: tuple[RepositoryLabel, ...] = field(default=())


def presence(name: str, on: set[str], removed: set[str]) -> LabelPresence:
    """Say where a label stands, by the keys of those on the issue and those taken off."""
    key = label_key(name)
    if key in on:
        return LabelPresence.PRESENT
    return LabelPresence.REMOVED_BY_PERSON if key in removed else LabelPresence.ABSENT


def keys_on(issue: Issue) -> set[str]:
    """Return the keys of the labels on an issue."""
    return set(map(label_key, issue.label_names))


def plan(
    issue: Issue,
    inventory: Inventory,
    removed: set[str],
    asked: Sequence[str],
    pinned: Mapping[str, str],
) -> Plan:
    """Return what to send: nothing if one of the labels is unknown.

    Raises:
        TrackerRefused: the issue is locked (``issue_locked``), would have too many labels
            (``too_many_labels``), or a label has another id than the pinned one
            (``label_changed``).
    """
    if issue.locked:
        raise TrackerRefused("issue_locked", "the issue is locked")
    if (change := inventory.change(pinned)) is not None:
        raise TrackerRefused(LABEL_CHANGED, change.value)
    known = [(name, inventory.find(name) if is_label_name(name) else None) for name in asked]
    if any(label is None for _, label in known):
        return Plan(outcome=LabelsAdded(results=tuple(_unknown(*pair) for pair in known)))
    on, wanted, results = keys_on(issue), list[RepositoryLabel](), list[LabelResult]()
    for label in [label for _, label in known if label is not None]:
        place = presence(label.name, on, removed)
        results.append(_result(label.name, place))
        on.add(label_key(label.name))
        if place is LabelPresence.ABSENT:
            wanted.append(label)
    if wanted and len(on) > MAX_LABELS:
        raise TrackerRefused("too_many_labels", "the issue would have over 100 labels")
    return Plan(outcome=LabelsAdded(results=tuple(results)), wanted=tuple(wanted))


def settled(made: Plan, labels: Sequence[Label], request_id: str | None = None) -> LabelsAdded:
    """Return the outcome, by the labels that GitHub says are on the issue now.

    A label whose id is not the one that was looked up has been made by this very request.

    Raises:
        TrackerUnavailable: one that was sent is not among them, so nothing is proven.
    """
    ids = {label_key(label.name): str(label.id) for label in labels}
    if not ids.keys() >= {label_key(label.name) for label in made.wanted}:
        raise TrackerUnavailable("the labels are not on the issue", effect_possible=True)
    created = tuple(x.name for x in made.wanted if ids[label_key(x.name)] != x.id)
    return LabelsAdded(results=made.outcome.results, created=created, request_id=request_id)


def _unknown(name: str, label: RepositoryLabel | None) -> LabelResult:
    refusal = LabelRefusal.NOT_ATTEMPTED if label else LabelRefusal.UNKNOWN_LABEL
    shown = label.name if label else name
    return LabelResult(label=shown, status=LabelStatus.REFUSED, refusal=refusal)


def _result(name: str, place: LabelPresence) -> LabelResult:
    match place:
        case LabelPresence.PRESENT:
            return LabelResult(label=name, status=LabelStatus.ALREADY_PRESENT)
        case LabelPresence.ABSENT:
            return LabelResult(label=name, status=LabelStatus.ADDED)
        case LabelPresence.REMOVED_BY_PERSON:
            refusal = LabelRefusal.REMOVED_BY_PERSON
            return LabelResult(label=name, status=LabelStatus.REFUSED, refusal=refusal)
