"""Which of many CODEOWNERS patterns matches a path last, in bounded time.

All patterns together form one tree, and a path goes through it once. Work is counted in units that
do not depend on the machine and ends at a limit, so a hostile file makes nobody wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from triage.policy.codeowners_patterns import Glob, Pattern, Tail

MAX_NODES: Final = 300_000
"""A file of nearly 3 MB with usual lines needs half of them."""

MAX_WORK: Final = 2_000_000
"""A unit is about a microsecond: whatever a file holds, its answers take seconds at most."""

_ENDING_CHARS: Final = 4
_SIGNS_PER_UNIT: Final = 16


class TooCostlyError(Exception):
    """What one file or one question may cost is used up."""


class Work:
    """What is left of the work that one question may cause."""

    def __init__(self, limit: int = MAX_WORK) -> None:
        self._left = limit
        self.seen: dict[tuple[int, str], list[_Node]] = {}
        """Where the globs of a node lead with a name: folders come again and again."""

    def spend(self, units: int) -> None:
        """Take `units` away.

        Raises:
            TooCostlyError: they are used up.
        """
        self._left -= units
        if self._left < 0:
            raise TooCostlyError


class _Node:
    """A place in the tree: what may follow, and the ranks of the patterns that end here."""

    __slots__ = ("beneath", "deep", "globs", "here", "is_deep", "names")

    def __init__(self, *, is_deep: bool = False) -> None:
        self.is_deep = is_deep
        self.here = self.beneath = -1
        self.deep: _Node | None = None
        self.names: dict[str, _Node] | None = None
        self.globs: _Globs | None = None


@dataclass(frozen=True, slots=True)
class _Globbed:
    """A glob, what every name that it matches holds, and where it leads."""

    glob: Glob
    needle: str
    node: _Node


class _Globs:
    """The globs that may follow a node, so ordered that a name meets few of them."""

    def __init__(self) -> None:
        self._nodes: dict[Glob, _Node] = {}
        self._by_ending: dict[str, list[_Globbed]] = {}

    def add(self, glob: Glob) -> tuple[_Node, bool]:
        """Return where a glob leads, and whether it is new."""
        known = self._nodes.get(glob)
        if known is not None:
            return known, False
        node = self._nodes[glob] = _Node()
        pieces = glob.literals()
        entry = _Globbed(glob, max(pieces, key=len), node)
        self._by_ending.setdefault(pieces[-1][-_ENDING_CHARS:], []).append(entry)
        return node, True

    def following(self, name: str, work: Work) -> list[_Node]:
        """Return where the globs that match `name` lead."""
        return [entry.node for entry in self._plausible(name, work) if _fits(entry, name, work)]

    def _plausible(self, name: str, work: Work) -> Iterator[_Globbed]:
        for chars in range(min(len(name), _ENDING_CHARS) + 1):
            entries = self._by_ending.get(name[len(name) - chars :])
            if entries:
                work.spend(1 + len(entries) // _SIGNS_PER_UNIT)
                yield from [entry for entry in entries if entry.needle in name]


def _fits(entry: _Globbed, name: str, work: Work) -> bool:
    work.spend(1 + len(entry.glob.signs) * len(name) // _SIGNS_PER_UNIT)
    return entry.glob.matches(name)


class PatternTree:
    """Many patterns, each with a rank; a later one has the higher rank."""

    def __init__(self) -> None:
        self._root = _Node()
        self._nodes = 1
        self._ends: dict[tuple[int, Tail], int] = {}

    def add(self, pattern: Pattern, rank: int) -> int | None:
        """Add a pattern, and return the rank of an equal one that it replaces.

        Raises:
            TooCostlyError: the tree is full.
        """
        node = self._root
        for step in pattern.steps:
            node = self._after(node, step)
            if self._nodes > MAX_NODES:
                raise TooCostlyError
        if pattern.tail is not Tail.BENEATH:
            node.here = rank
        if pattern.tail is not Tail.HERE:
            node.beneath = rank
        end = (id(node), pattern.tail)
        replaced = self._ends.get(end)
        self._ends[end] = rank
        return replaced

    def _after(self, node: _Node, step: str | Glob | None) -> _Node:
        if isinstance(step, Glob):
            node.globs = node.globs or _Globs()
            following, is_new = node.globs.add(step)
        elif step is None:
            is_new = node.deep is None
            following = node.deep = node.deep or _Node(is_deep=True)
        else:
            node.names = {} if node.names is None else node.names
            is_new = step not in node.names
            following = node.names.setdefault(step, _Node())
        self._nodes += is_new
        return following

    def last_match(self, names: Sequence[str], work: Work) -> int | None:
        """Return the highest rank of a pattern that matches a path, given as its names.

        Raises:
            TooCostlyError: it would take more than what is left of `work`.
        """
        best = -1
        active = list(_with_deep([self._root]))
        for name in names:
            best = max([best, *[node.beneath for node in active]])
            active = self._step(active, name, work)
        best = max([best, *[node.here for node in active]])
        return best if best >= 0 else None

    @staticmethod
    def _step(active: Iterable[_Node], name: str, work: Work) -> list[_Node]:
        reached: dict[_Node, None] = {}
        for node in active:
            work.spend(1)
            if node.is_deep:
                reached[node] = None
            reached.update(dict.fromkeys(_with_deep(_following(node, name, work))))
        return list(reached)


def _following(node: _Node, name: str, work: Work) -> Iterator[_Node]:
    if node.names is not None and name in node.names:
        yield node.names[name]
    if node.globs is not None:
        key = (id(node), name)
        if key not in work.seen:
            work.seen[key] = node.globs.following(name, work)
        found = work.seen[key]
        work.spend(len(found))
        yield from found


def _with_deep(nodes: Iterable[_Node]) -> Iterator[_Node]:
    """Yield nodes, and where ``**`` behind them leads without taking a name."""
    for node in nodes:
        yield node
        if node.deep is not None:
            yield node.deep
