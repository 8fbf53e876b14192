"""Reads our Markdown pages: blocks, tables, headings, links and spans of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_FENCE: Final = re.compile(
    r"^```(?P<kind>[\w-]*)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_LINK: Final = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING: Final = re.compile(r"^#{1,6} (?P<title>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its kind, its text and the line where its text begins."""

    kind: str
    body: str
    line: int


@dataclass(frozen=True, slots=True)
class Page:
    """A Markdown page."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """The path in the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def prose(self) -> str:
        """The text without fenced blocks."""
        return _FENCE.sub("", self.text)

    def blocks(self, kind: str | None = None) -> list[Block]:
        """Return the fenced blocks, of one kind or all."""
        return [
            Block(found["kind"], found["body"], self.text.count("\n", 0, found.start("body")) + 1)
            for found in _FENCE.finditer(self.text)
            if kind in {None, found["kind"]}
        ]

    def links(self) -> list[str]:
        """Return the targets of all links outside of fenced blocks."""
        return [found["target"] for found in _LINK.finditer(self.prose)]

    def anchors(self) -> set[str]:
        """Return the fragments that headings can be linked by."""
        return {_slug(found["title"]) for found in _HEADING.finditer(self.prose)}

    def table(self, *headings: str) -> list[list[str]]:
        """Return the rows of the one table with these headings."""
        [rows] = [rows for head, rows in self._tables() if head == list(headings)]
        return rows

    def _tables(self) -> Iterator[tuple[list[str], list[list[str]]]]:
        lines = self.prose.splitlines()
        for number, line in enumerate(lines[:-1]):
            if line.startswith("|") and re.fullmatch(r"\|[\s|:-]+\|", lines[number + 1]):
                rows = []
                for row in lines[number + 2 :]:
                    if not row.startswith("|"):
                        break
                    rows.append(_cells(row))
                yield _cells(line), rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _slug(title: str) -> str:
    """Return a heading's fragment as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def page(name: str) -> Page:
    """Return the page at a path in the repository."""
    path = ROOT / name
    return Page(path, path.read_text(encoding="utf-8"))


def pages() -> list[Page]:
    """Return every page that people are sent to."""
    names = sorted(
        path.relative_to(ROOT).as_posix()
        for path in (*ROOT.glob("*.md"), *ROOT.glob("fixtures/*.md"), *ROOT.glob("docs/**/*.md"))
    )
    return [page(name) for name in names]
