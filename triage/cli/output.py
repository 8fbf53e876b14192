"""The two streams of a command: its answer on stdout, everything else on stderr.

Why it exists: every line for people leaves through `put`, `say` or `put_table`, which escape it.
A caller may therefore pass untrusted text, and must pass one line at a time.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TextIO

from triage.cli.text import fold, visible

PLAIN_COLUMNS: Final = 80
MIN_COLUMNS: Final = 40
MAX_COLUMNS: Final = 120
GAP: Final = 2
_WIDE: Final = 100_000
_EMPTY: Final = frozenset({"", "-"})
_STYLES: Final[Mapping[str, str]] = {
    "completed": "green",
    "ok": "green",
    "accepted": "green",
    "applied": "green",
    "review_required": "yellow",
    "tool_pending": "yellow",
    "warn": "yellow",
    "attention": "red",
    "failed": "red",
    "fail": "red",
    "refused": "red",
}


class Format(StrEnum):
    """How an answer is printed."""

    TEXT = "text"
    JSON = "json"


class NumbersFormat(StrEnum):
    """How an answer that a metrics system may scrape is printed."""

    TEXT = "text"
    JSON = "json"
    PROMETHEUS = "prometheus"


def prepare_streams() -> None:
    """Make both streams able to print anything, whatever encoding the terminal has.

    Who closed one of them does not want to see what goes there.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - as long as the process
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def put(*lines: str) -> None:
    """Print lines of the answer."""
    for line in lines:
        sys.stdout.write(f"{visible(line)}\n")
    sys.stdout.flush()


def say(*lines: str) -> None:
    """Print lines that are not the answer: progress, warnings, what to do next."""
    for line in lines:
        sys.stderr.write(f"{visible(line)}\n")
    sys.stderr.flush()


def put_json(document: Any) -> None:  # noqa: ANN401 - any JSON value
    """Print one JSON document as ASCII, which no terminal can take for anything else."""
    put(*json.dumps(document, indent=2, ensure_ascii=True).splitlines())


def put_exactly(text: str) -> None:
    """Print text of our own as UTF-8 bytes, which others compare one by one.

    Nothing is added but, on a terminal, a line break.
    """
    end = "\n" if sys.stdout.isatty() else ""
    sys.stdout.flush()
    sys.stdout.buffer.write(f"{text}{end}".encode())
    sys.stdout.buffer.flush()


def columns(stream: TextIO | None = None) -> int:
    """Return how wide lines for people may be: the terminal's width, else 80."""
    if not (stream or sys.stdout).isatty():
        return PLAIN_COLUMNS
    return min(max(shutil.get_terminal_size().columns, MIN_COLUMNS), MAX_COLUMNS)


def put_long(*lines: str) -> None:
    """Print lines of the answer that may be long; a terminal gets them folded and indented."""
    if not sys.stdout.isatty():
        put(*lines)
        return
    for line in lines:
        first, *others = fold(line, columns() - 4)
        put(first, *(f"    {other}" for other in others))


def beside(label: str, text: str) -> list[str]:
    """Return a text beside its label, folded so that it never reaches the left edge."""
    first, *others = fold(text, columns() - len(label))
    return [f"{label}{first}", *(f"{'':<{len(label)}}{other}" for other in others)]


def put_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; headers and cells are plain text, never markup, and none is folded or cut.

    A column that is empty in every row is left out. Where the terminal is too narrow, each row
    is printed as lines of its own instead.
    """
    shown = [[visible(cell) for cell in row] for row in rows]
    kept = [at for at in range(len(headers)) if any(row[at] not in _EMPTY for row in shown)]
    names, cells = (
        [visible(headers[at]) for at in kept],
        [[row[at] for at in kept] for row in shown],
    )
    on_terminal = sys.stdout.isatty()
    if on_terminal and _width(names, cells) > shutil.get_terminal_size().columns:
        put(*_records(names, cells))
        return
    from rich.console import Console  # noqa: PLC0415 - slow to load, and help needs none of it
    from rich.table import Table  # noqa: PLC0415 - likewise
    from rich.text import Text  # noqa: PLC0415 - likewise

    console = Console(file=sys.stdout, width=None if on_terminal else _WIDE, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for header in names:
        table.add_column(Text(header), overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    console.print(table)


def _width(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return how many columns a table takes, if every character takes one."""
    return sum(max(map(len, column)) + GAP for column in zip(headers, *rows, strict=True))


def _records(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield each row as its first cell and a line for each other cell that says something."""
    wide = max(map(len, headers))
    for first, *others in rows:
        yield first
        for name, cell in zip(headers[1:], others, strict=True):
            if cell not in _EMPTY:
                yield f"  {name.lower():<{wide}}  {cell}"
