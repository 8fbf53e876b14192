"""Names that people wrote into a file of theirs, as messages to them may show them.

Why it exists: whoever mistyped a field's name has to be told which. Only a command may do so, about
a file that its user gave it: what a history or a log keeps names no field that no contract has.
Pure.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Final

MAX_SHOWN_CHARS: Final = 60


def shown_name(name: str) -> str:
    r"""Return a name in quotes: short, with all that cannot be seen as ``\u{...}``."""
    cut = name if len(name) <= MAX_SHOWN_CHARS else f"{name[: MAX_SHOWN_CHARS - 1]}…"
    safe = "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in cut)
    return '"{}"'.format(safe.replace('"', '\\"'))


def meant(name: str, known: Collection[str]) -> str:
    """Return a question after the known name that is nearest, or nothing."""
    close = difflib.get_close_matches(name[:MAX_SHOWN_CHARS], sorted(known), 1)
    return f" (did you mean {close[0]}?)" if close else ""
