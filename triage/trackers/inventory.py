"""The labels that a repository has: found by name in any letter case, and held to by id.

Why it exists: a name is not a label. One that was deleted and made again, or renamed, is another
one to whoever approved it, or the same one under a name that nobody approved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from triage.trackers.base import label_key

LABEL_CHANGED = "label_changed"
"""The code of a refusal: a label is not the one that was approved, and nothing was done."""


@dataclass(frozen=True)
class RepositoryLabel:
    """A label of a repository: its id, which a rename does not change, and its spelling."""

    id: str
    name: str


class Change(StrEnum):
    """What became of a label since it was shown, in the words of a run's reason."""

    REMADE = "a label was deleted and made again after it was shown"
    RENAMED = "a label was renamed after it was shown"


class Inventory:
    """The labels of a repository; `has_ids` says whether their ids mean anything."""

    def __init__(self, labels: Iterable[RepositoryLabel], *, has_ids: bool = True) -> None:
        self.labels = tuple(labels)
        self.has_ids = has_ids
        self._by_name = {label.name: label for label in self.labels}
        self._by_key: dict[str, list[RepositoryLabel]] = {}
        for label in self.labels:
            self._by_key.setdefault(label_key(label.name), []).append(label)

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, sorted."""
        return tuple(sorted(label.name for label in self.labels))

    def lacks(self, names: Iterable[str]) -> list[str]:
        """Return those of `names` that are not there in any spelling."""
        return [name for name in names if label_key(name) not in self._by_key]

    def find(self, name: str) -> RepositoryLabel | None:
        """Return the label of this name, whatever its letter case; None if it is not one label."""
        exact = self._by_name.get(name)
        alike = self._by_key.get(label_key(name), [])
        return exact or (alike[0] if len(alike) == 1 else None)

    def ids(self, names: Sequence[str]) -> dict[str, str]:
        """Return the ids of those of `names` that are there, by the name that was asked for."""
        found = {name: self.find(name) for name in names}
        return {name: label.id for name, label in found.items() if label is not None}

    def change(self, pinned: Mapping[str, str]) -> Change | None:
        """Say which of the labels, by name and id, is another one now; None if none is.

        One that is simply not there any more is no change: whoever wants to add it sees that.
        """
        names = {label.id: label.name for label in self.labels}
        for name, id_ in pinned.items():
            found = self.find(name)
            if found is not None and found.id == id_:
                continue
            if id_ in names:
                return Change.RENAMED
            if found is not None:
                return Change.REMADE
        return None
