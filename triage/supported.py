"""What settings may ask for and this version cannot do: said at once, never ignored.

Why it exists: a maintainer who sets stricter rules and gets the built-in ones, without a word, has
been misled. So whatever is set and has no effect yet stops the worker.
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.models.factory import KINDS, known_names
from triage.settings import Settings, SettingsError, config_file
from triage.settings_sources import rule_tables

TRACKERS = ("local",)


def check_supported(settings: Settings) -> None:
    """Refuse settings that would have no effect.

    Raises:
        SettingsError: with one line a problem.
    """
    problems = [*_problems(settings)]
    if problems:
        raise SettingsError(*problems)


def rules_problem(settings: Settings) -> str | None:
    """Say where rules are set that this version does not read, or None."""
    if settings.policy is not None:
        return (
            "TRIAGE_POLICY: rules files are not read yet, the built-in rules are in force; unset it"
        )
    file = config_file()
    tables = rule_tables(file) if file else []
    if file and tables:
        return (
            f"{file.name}: the tables {', '.join(tables)} are rules, which are not read yet; the"
            " built-in rules are in force; remove them"
        )
    return None


def _problems(settings: Settings) -> Iterator[str]:
    problem = rules_problem(settings)
    if problem is not None:
        yield problem
    if settings.model.partition(":")[0] not in KINDS:
        yield f"TRIAGE_MODEL: is not built in yet; set it to one of {known_names()}"
    if settings.tracker not in TRACKERS:
        yield f"TRIAGE_TRACKER: is not built in yet; set it to one of {', '.join(TRACKERS)}"
