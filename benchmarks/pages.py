"""What is in a database that is an SQLite file: its pages, also those still in its journal."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

_USED: Final = """\
SELECT (page_count - freelist_count) * page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""


def database_bytes(folder: Path) -> dict[str, int]:
    """Return the bytes of all pages in use of each ``*.db`` in a folder, by the file's name."""
    return {file.name: _bytes(file) for file in sorted(folder.glob("*.db"))}


def _bytes(file: Path) -> int:
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
        found: int = database.execute(_USED).fetchone()[0]
        return found
