"""Files of one JSON object a line, as people write and export them: their lines, and mistakes.

Why it exists: whoever corrects such a file wants to know all that is wrong with it, and no more
than can be read. Pure.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Final

MAX_MISTAKES: Final = 5
"""As many lines are named; how many there are in all is said beside them."""
_MARK: Final = b"\xef\xbb\xbf"


def numbered_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank with its number, counted from 1; a byte-order mark goes.

    Only a line feed ends a line: what else some readers split at may stand in a JSON string.
    """
    for number, line in enumerate(io.BytesIO(data.removeprefix(_MARK)), start=1):
        if line.strip():
            yield number, line


class Mistakes:
    """What is wrong with the lines of a file; false as long as nothing is."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._count = 0

    def add(self, mistake: str) -> None:
        """Take note of one more line that is wrong."""
        self._count += 1
        if len(self._first) < MAX_MISTAKES:
            self._first.append(mistake)

    def __bool__(self) -> bool:
        return self._count > 0

    def __str__(self) -> str:
        """Name the first lines, each on a line of its own, and say how many there are."""
        if self._count <= MAX_MISTAKES:
            return "\n".join(self._first)
        return "\n".join([*self._first, f"lines that are wrong, in all: {self._count}"])
