"""Notes of which fields of a record were given, one for all records of which the same were.

Why it exists: pydantic keeps such a set for each record, of 216 to 728 bytes, which is more than
most records take. A run that waits for a person has thirty of them, and a worker a thousand runs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NoReturn

KNOWN: Final = 4_096
"""How many notes are known again; what a stranger sends may make many."""


@lru_cache(KNOWN)
def given(names: frozenset[str]) -> set[str]:
    """Return the note of these names: a set, since pydantic takes nothing else, that stays."""
    note: set[str] = _Note(names)
    return note


def _copied(note: set[str]) -> set[str]:
    return set(note)


def _refuse(*_: object) -> NoReturn:
    raise TypeError("records share their note of what was given: copy the record instead")


# Built by its names: a subclass that takes methods away is one that no type checker lets pass.
_Note: Any = type(
    "_Note",
    (set,),
    {
        # Whoever copies a record changes the copy's note.
        "__copy__": _copied,
        **dict.fromkeys(
            (
                *("add", "clear", "discard", "pop", "remove", "update"),
                *("difference_update", "intersection_update", "symmetric_difference_update"),
                *("__iand__", "__ior__", "__isub__", "__ixor__"),
            ),
            _refuse,
        ),
    },
)
