"""Checks the rules: can they be read, and are those that are written in force?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from triage.cli.findings import Finding, Level
from triage.cli.policy_state import ACCEPT, PolicyState, policy_state
from triage.cli.policy_words import accepted_in_words, short, source_in_words
from triage.policy.rules_file import RulesFileError
from triage.rules_place import RulesPlace
from triage.settings import Settings
from triage.storage.errors import StorageError

NAME: Final = "rules"
WRONG: Final = "correct it; a worker does not start with it, and a running one keeps what it had"


async def check(settings: Settings) -> list[Finding]:
    """Return what there is to say about the rules that the settings name."""
    place = RulesPlace.of(settings)
    try:
        state = await policy_state(settings, place)
    except RulesFileError as error:
        return [Finding(NAME, Level.FAIL, f"{place.path}: {f}", WRONG) for f in error.findings]
    except StorageError as error:
        return [Finding(NAME, Level.WARN, f"not compared with what was accepted: {error}")]
    return [*_standing(state)]


def _standing(state: PolicyState) -> Iterator[Finding]:
    source, digest = source_in_words(state), short(state.standing.rules.digest())
    if state.is_written:
        yield Finding(NAME, Level.OK, f"{source}, {digest}")
    else:
        count = len(state.standing.waiting)
        what = str(state.written.path or "the built-in rules")
        detail = f"{what} would allow {count} more, and {ACCEPT}"
        advice = f"until then {accepted_in_words(state.accepted)} are in force, as a whole"
        yield Finding(NAME, Level.WARN, detail, advice)
    for warning in state.written.warnings:
        yield Finding(NAME, Level.WARN, f"{state.written.path}: {warning}")
