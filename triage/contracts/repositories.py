"""When two names of repositories may be names of one: for rules, budgets and counts."""

from __future__ import annotations

import unicodedata


def folded_repository(name: str) -> str:
    """Return a name in the form in which it holds a run to a rule or a budget.

    GitHub takes letters of either case for the same. A tracker that does not may have two
    repositories whose names are one here: then both are held to what is said of either.
    """
    return unicodedata.normalize("NFKC", name).casefold()
