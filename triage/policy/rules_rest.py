"""What is left of a rules file whose mistakes of shape are taken out.

Why it exists: whoever mends a file should see all that is wrong with it at once, and what a key
says can be judged only where what it rests on has a shape. Pure.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from triage.policy.rules_values import Path

_ANYTHING: Final = "anything"
_VALUES: Final[Mapping[str, object]] = {
    "labels": "control",
    "repositories": "shadow",
    "tools": True,
}
"""What stands for a wrong value: the name beside it can be judged all the same."""
_NEEDED: Final[Mapping[str, Collection[str]]] = {
    "owners": {"owner"},
    "topics": {"owner", "route"},
}
"""The keys without which an entry is none: what else it says can be judged all the same."""


def path_of(place: Path) -> Path:
    """Return where a mistake is, which may be a key itself."""
    return tuple(part for part in place if part != "[key]")


def filled(table: Mapping[str, Any], wrong: Collection[Path]) -> dict[str, Any]:
    """Return a table in which something stands for what is wrong, or which is without it."""
    rest = copy.deepcopy(dict(table))
    for path in wrong:
        match path:
            case (name, key) if name in _VALUES and isinstance(rest.get(str(name)), dict):
                rest[str(name)][key] = _VALUES[str(name)]
            case (name, key, part) if _is_entry(rest, path) and part in _NEEDED.get(str(name), ()):
                rest[str(name)][key][part] = _ANYTHING
            case _:
                _take_out(rest, path)
    return rest


def _is_entry(table: Mapping[str, Any], path: Path) -> bool:
    entries = table.get(str(path[0]))
    return isinstance(entries, dict) and isinstance(entries.get(path[1]), dict)


def without(table: Mapping[str, Any], wrong: Collection[Path]) -> dict[str, Any]:
    """Return a table without the entries that are wrong, each as a whole if a part is missing."""
    rest = copy.deepcopy(dict(table))
    for path in wrong:
        _take_out(rest, path)
    return rest


def _take_out(table: dict[str, Any], path: Path) -> None:
    holder: Any = table
    key = path[0]
    for part in path[1:]:
        inner = holder.get(key)
        if not isinstance(inner, dict) or part not in inner:
            break
        holder, key = inner, part
    holder.pop(key, None)


@dataclass(frozen=True, slots=True)
class Doubt:
    """What of a file is not what was meant: nothing that rests on it is called wrong.

    Attributes:
        wrong: where the mistakes of shape are.
        lost: tables that are not in the file, where one that is not known may be meant for them.
    """

    wrong: frozenset[Path] = frozenset()
    lost: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, wrong: Collection[Path], table: Mapping[str, Any], tables: Collection[str]
    ) -> Doubt:
        """Return the doubt about a file.

        Args:
            wrong: where its mistakes of shape are.
            table: the file.
            tables: those that are known.
        """
        is_misspelt = any(path[0] not in tables for path in wrong)
        there = {*table, *(str(path[0]) for path in wrong)}
        lost = frozenset(tables) - there if is_misspelt else frozenset()
        return cls(frozenset(wrong), lost)

    def about(self, *paths: Path) -> bool:
        """Whether one of these keys, or a part of it, is in doubt."""
        return any(
            path[0] in self.lost or any(_is_part(path, place) for place in self.wrong)
            for path in paths
        )


NO_DOUBT: Final = Doubt()


def _is_part(path: Path, place: Path) -> bool:
    return path[: len(place)] == place or place[: len(path)] == path
