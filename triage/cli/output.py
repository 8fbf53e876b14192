"""The two streams of a command: its answer on stdout, everything else on stderr.

Why it exists: every line for people leaves through `put`, `say` or `put_table`, which escape it.
A caller may therefore pass untrusted text, and must pass one line at a time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from triage.cli.text import visible

_WIDE: Final = 100_000
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


def prepare_streams() -> None:
    """Make both streams able to print anything, whatever encoding the terminal has."""
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


def put_raw_json(data: bytes) -> None:
    """Print a JSON document that arrived as bytes, unchanged but for layout and escapes."""
    put_json(json.loads(data))


def put_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; cells are plain text, never markup, and are folded but not cut."""
    from rich.console import Console  # noqa: PLC0415 - slow to load, and help needs none of it
    from rich.table import Table  # noqa: PLC0415 - likewise
    from rich.text import Text  # noqa: PLC0415 - likewise

    on_terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if on_terminal else _WIDE, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in headers:
        table.add_column(Text(header), overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell), style=_STYLES.get(cell, "")) for cell in row))
    console.print(table)
