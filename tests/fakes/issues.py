"""Repositories, issues and labels as a commit log tells of them: a fold over its entries. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.fakes.commit_log import Action, Entry


def label_key(name: str) -> str:
    """What two spellings of one label have in common."""
    return unicodedata.normalize("NFC", name).casefold()


@dataclass
class Issue:
    """One issue; `moved_to` is where it was transferred to, if it was."""

    repository: str
    number: str
    title: str
    body: str
    author: str
    state: str = "open"
    locked: bool = False
    deleted: bool = False
    pull_request: bool = False
    moved_to: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    events: list[Entry] = field(default_factory=list)


class World:
    """Everything that a tracker knows."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.labels: dict[str, dict[str, str]] = {}
        self.issues: dict[tuple[str, str], Issue] = {}
        for entry in entries:
            self.apply(entry)

    def apply(self, entry: Entry) -> None:
        """Make one change."""
        if entry.issue is None:
            self._define(entry)
            return
        key = (entry.repository, entry.issue)
        if entry.action is Action.OPENED:
            self.labels.setdefault(entry.repository, {})
            self.issues[key] = Issue(*key, author=entry.actor, **entry.data)
        issue = self.issues[key]
        _change(issue, entry)
        issue.events.append(entry)

    def find(self, repository: str, number: str) -> Issue | None:
        """Return an issue, also one that is gone, unless there never was one."""
        return self.issues.get((repository, number))

    def inventory(self, repository: str) -> dict[str, str]:
        """Return a repository's labels by key."""
        return self.labels.get(repository, {})

    def _define(self, entry: Entry) -> None:
        known = self.labels.setdefault(entry.repository, {})
        name = entry.label or ""
        if entry.action is Action.LABEL_DROPPED:
            known.pop(label_key(name), None)
        elif entry.action is Action.LABEL_RENAMED:
            on = [i.labels for (where, _), i in self.issues.items() if where == entry.repository]
            for labels in (known, *on):
                _rename(labels, name, entry.data["to"])
        else:
            known[label_key(name)] = name


def _rename(labels: dict[str, str], name: str, new: str) -> None:
    if labels.pop(label_key(name), None) is not None:
        labels[label_key(new)] = new


def label_sets(
    entries: Sequence[Entry], repository: str, issue: str
) -> list[tuple[float, frozenset[str]]]:
    """Return every set of labels that an issue had, and from when on it had it."""
    world = World()
    sets: list[tuple[float, frozenset[str]]] = []
    for entry in entries:
        if (entry.repository, entry.issue) == (repository, issue):
            world.apply(entry)
            labels = world.issues[(repository, issue)].labels
            sets.append((entry.time, frozenset(labels.values())))
    return sets


def _change(issue: Issue, entry: Entry) -> None:
    name = entry.label or ""
    match entry.action:
        case Action.LABELED:
            issue.labels[label_key(name)] = name
        case Action.UNLABELED:
            issue.labels.pop(label_key(name), None)
        case Action.EDITED:
            for what, text in entry.data.items():
                setattr(issue, what, text)
        case Action.LOCKED | Action.UNLOCKED:
            issue.locked = entry.action is Action.LOCKED
        case Action.DELETED:
            issue.deleted = True
        case Action.TRANSFERRED:
            issue.moved_to = entry.data["to"]
        case _:
            pass
