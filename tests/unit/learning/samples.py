"""Made-up labelled issues that are easy to tell apart, and files of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from triage.learning.rows import Rows, read_rows

OBJECTS: Final = ("page", "button", "export", "login", "search", "menu", "upload", "report")
SENTENCES: Final = {
    "bug": "The {} crashes with an exception",
    "feature": "Please add support for a {}",
    "question": "How do I use the {}?",
}


def issues(labels: Iterable[str] = SENTENCES, group: str | None = None) -> Iterator[dict[str, str]]:
    """Yield eight issues a label."""
    for label in labels:
        for name in OBJECTS:
            issue = {
                "title": SENTENCES[label].format(name),
                "body": "It is so.",
                "label": label,
            }
            yield issue if group is None else {**issue, "group": group}


def as_lines(rows: Iterable[object]) -> bytes:
    """Return rows as a file."""
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def rows_of(*found: Iterable[object]) -> Rows:
    """Return what a file of these rows holds."""
    return read_rows(as_lines(row for rows in found for row in rows))
