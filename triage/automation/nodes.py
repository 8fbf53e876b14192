"""YAML as it is written: texts with their lines, in lists and tables, and nothing else.

Why it exists: what a repository holds may be anything, so nothing is constructed from it: no
dates, no booleans (``on`` stays the word that it is) and no objects. Aliases are resolved without
copying, and counted as if they were copied, so a small file cannot become a huge one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

MAX_FILE_BYTES: Final = 524_288
MAX_NODES: Final = 50_000
MAX_ALIASES: Final = 200
MAX_DEPTH: Final = 60

# The wheels carry the fast one; both follow the same rules.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Text:
    """A scalar, as it is written; `is_block` says that it begins on the line after `line`."""

    value: str
    line: int
    is_block: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """A list."""

    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping; a key that stands there twice is there twice."""

    pairs: tuple[tuple[Text, Node], ...]
    line: int

    def get(self, name: str) -> Node | None:
        """Return the first value under a key, or None."""
        return next((value for key, value in self.pairs if key.value == name), None)


Node = Text | Listed | Table


class NotYamlError(Exception):
    """A file that cannot be read as YAML within bounds.

    Attributes:
        line: where it was noticed, counted from 1; 0 if that is not known.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def read_yaml(data: bytes) -> tuple[Node, ...]:
    """Return the documents in a file.

    Raises:
        NotYamlError: it is not YAML, or larger, deeper or more entangled than a person writes it.
    """
    if len(data) > MAX_FILE_BYTES:
        raise NotYamlError(f"has more than {MAX_FILE_BYTES:,} bytes")
    builder = _Builder()
    try:
        for event in yaml.parse(data, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # The end of a file counts as a line of its own, which nobody finds.
        line = min(mark.line, data.rstrip(b"\n").count(b"\n")) + 1 if mark else 0
        raise NotYamlError("is not YAML", line) from None
    except (yaml.YAMLError, UnicodeError, ValueError):
        raise NotYamlError("is not YAML") from None
    return tuple(builder.documents)


def texts(node: Node) -> Iterator[Text]:
    """Yield every value below a node that is a text; keys are none."""
    for item in _children(node):
        if isinstance(item, Text):
            yield item
        else:
            yield from texts(item)


def _children(node: Node) -> Iterable[Node]:
    match node:
        case Text():
            return (node,)
        case Listed():
            return node.items
        case Table():
            return [value for _, value in node.pairs]


@dataclass(slots=True)
class _Open:
    """A list or table that has not ended; `size` counts it and all in it."""

    is_table: bool
    line: int
    anchor: str | None
    items: list[Node] = field(default_factory=list)
    size: int = 1


class _Builder:
    """Builds documents from the parser's events."""

    def __init__(self) -> None:
        self.documents: list[Node] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._aliases = 0
        self._size = 0

    def take(self, event: yaml.Event) -> None:
        """Take the next event.

        Raises:
            NotYamlError: a bound is crossed.
        """
        line = event.start_mark.line + 1 if event.start_mark else 0
        match event:
            case yaml.DocumentStartEvent():
                self._anchors = {}
            case yaml.ScalarEvent():
                node = Text(event.value, line, is_block=event.style in {"|", ">"})
                self._add(node, 1, event.anchor, line)
            case yaml.AliasEvent():
                self._alias(event.anchor, line)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                if len(self._open) >= MAX_DEPTH:
                    raise NotYamlError("is nested too deep", line)
                is_table = isinstance(event, yaml.MappingStartEvent)
                self._open.append(_Open(is_table, line, event.anchor))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                ended = self._open.pop()
                self._add(_closed(ended), ended.size, ended.anchor, line)
            case _:
                pass

    def _alias(self, name: str | None, line: int) -> None:
        self._aliases += 1
        known = self._anchors.get(name or "")
        if known is None:
            raise NotYamlError("refers to itself, or to what is not there", line)
        if self._aliases > MAX_ALIASES:
            raise NotYamlError(f"has more than {MAX_ALIASES} aliases", line)
        self._add(*known, None, line)

    def _add(self, node: Node, size: int, anchor: str | None, line: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = node, size
        if not self._open:
            self.documents.append(node)
            self._size += size
            total = self._size
        else:
            self._open[-1].items.append(node)
            self._open[-1].size += size
            total = self._open[-1].size
        if total > MAX_NODES:
            raise NotYamlError(f"has more than {MAX_NODES:,} entries", line)


def _closed(ended: _Open) -> Node:
    if not ended.is_table:
        return Listed(tuple(ended.items), ended.line)
    keys, values = ended.items[::2], ended.items[1::2]
    # A key that is a list or a table names nothing that we know.
    names = [key if isinstance(key, Text) else Text("", key.line) for key in keys]
    return Table(tuple(zip(names, values, strict=True)), ended.line)
