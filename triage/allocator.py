"""How a long-lived process asks the C library for memory, where that is the GNU one.

Why it exists: the library gives each thread an arena of its own to ask, up to eight for each
processor, and every arena keeps room that no other thread gets. A worker has two dozen threads, of
which one at a time does anything: with one arena, a thousand waiting runs take 15 MB less.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Final

_ARENA_MAX: Final = -8
"""As ``mallopt`` numbers it."""


def use_one_arena() -> None:
    """Let all threads share one arena; to be called before there are any."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def give_back() -> None:
    """Return what is free, such as what a start left behind, to the operating system."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
