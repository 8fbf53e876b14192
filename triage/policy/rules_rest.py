"""What is left of a rules file whose mistakes of shape are taken out.

Why it exists: whoever mends a file should see all that is wrong with it at once, and what a key
says can be judged only where the file has a shape. Pure.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any, Final

Path = tuple[str | int, ...]

_RESTS_ON: Final[Mapping[str, Collection[Path]]] = {
    "approvals": {("approvals",)},
    "owners": {("labels",)},
    "policy": {("policy", "routes")},
    "topics": {("policy", "routes")},
}
"""What a finding about a table rests on; it says nothing where that is not what was meant."""


def path_of(place: Path) -> Path:
    """Return where a mistake is, which may be a key itself."""
    return tuple(part for part in place if part != "[key]")


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


def can_be_judged(name: str, wrong: Collection[Path], tables: Collection[str]) -> bool:
    """Whether what a finding about the table `name` rests on is what was meant.

    Args:
        name: the finding's table.
        wrong: the mistakes of shape.
        tables: those that are known; one that is not may be one of them, misspelt.
    """
    if any(path[0] not in tables for path in wrong):
        return name not in _RESTS_ON
    rests_on = _RESTS_ON.get(name, ())
    return not any(
        path[: len(base)] == base or base[: len(path)] == path
        for path in wrong
        for base in rests_on
    )
