"""Which labels a regular expression is about, as far as it is plain; it is never run."""

from __future__ import annotations

import re
from typing import Final

from triage.automation.uses import Match

_PLAIN: Final = re.compile(r"(?:[\w\s/:,&@#%='\"~<>-]|\\[^\w\s])*")


def pattern(expression: str) -> tuple[Match, str]:
    """Return what a label that matches must be, begin or end with, or hold; else any label."""
    begins, ends = expression.startswith("^"), expression.endswith("$")
    inner = expression[begins : len(expression) - ends]
    plain = _PLAIN.match(inner)
    text = re.sub(r"\\(.)", r"\1", plain[0] if plain else "")
    is_whole = plain is not None and plain.end() == len(inner)
    if not is_whole:
        # What follows may make the last letter optional.
        text = text[:-1] if inner[len(plain[0]) if plain else 0 :][:1] in {"*", "?", "{"} else text
    if "|" in inner or not text:
        return Match.ANY, ""
    if begins:
        return (Match.EXACT if is_whole and ends else Match.PREFIX), text
    if is_whole:
        return (Match.SUFFIX if ends else Match.PART), text
    return Match.ANY, ""
