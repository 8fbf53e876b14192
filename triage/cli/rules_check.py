"""Checks the rules: can they be read, and are those that are written in force?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from triage.cli.errors import InputError
from triage.cli.findings import Finding, Level
from triage.cli.policy_state import PolicyState, policy_state
from triage.cli.policy_words import accepted_in_words, short, source_in_words, waiting_in_words
from triage.policy.rules_file import RulesFileError
from triage.rules_place import RulesPlace
from triage.settings import Settings
from triage.storage.errors import StorageError

NAME: Final = "rules"
START: Final = "a worker does not start with it, and a running one keeps what it had"
WRONG: Final = f"correct it; {START}"


async def check(settings: Settings) -> list[Finding]:
    """Return what there is to say about the rules that the settings name."""
    place = RulesPlace.of(settings)
    try:
        state = await policy_state(settings, place)
    except RulesFileError as error:
        return [Finding(NAME, Level.FAIL, f"{place.path}: {f}", WRONG) for f in error.findings]
    except InputError as error:
        return [Finding(NAME, Level.FAIL, str(error), f"{error.hint}; {START}")]
    except StorageError as error:
        return [Finding(NAME, Level.WARN, f"not compared with what was accepted: {error}")]
    return [*_standing(state)]


def _standing(state: PolicyState) -> Iterator[Finding]:
    source, digest = source_in_words(state), short(state.standing.rules.digest())
    if state.is_written:
        yield Finding(NAME, Level.OK, f"{source}, {digest}")
    else:
        detail = waiting_in_words(state)
        advice = f"until then {accepted_in_words(state.accepted)} are in force, as a whole"
        yield Finding(NAME, Level.WARN, detail, advice)
    for warning in state.written.warnings:
        yield Finding(NAME, Level.WARN, f"{state.written.path}: {warning}")
