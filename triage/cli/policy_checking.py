"""`triage policy check`: what is wrong with a rules file, and what it would allow."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer
from pydantic import JsonValue

from triage.cli.output import Format, columns, put, put_json, put_table
from triage.cli.policy_state import (
    COMMAND,
    LOOKED_AT_WITH,
    WAITS,
    PolicyState,
    needed_setting,
    place_of,
    policy_state,
    read_written,
)
from triage.cli.policy_words import (
    BUILTIN,
    WIDENING_HEADERS,
    accepted_in_words,
    accepted_json,
    put_narrowings,
    short,
    widening_cells,
    widening_json,
)
from triage.cli.running import run
from triage.cli.text import wrap
from triage.policy.rules_file import RuleFinding, RulesFileError
from triage.policy.rules_findings import MAX_FINDINGS
from triage.rules_place import RulesPlace
from triage.settings import load_settings


def check(file: Path | None, format_: Format) -> None:
    """Print every finding with its line and hint, then what comes of the file.

    Raises:
        InputError: there is no such file, or it cannot be read.
        typer.Exit: with status 1 if the file cannot be used.
        StorageError: the file can be used, and cannot be compared with what was accepted.
    """
    settings = load_settings()
    place = place_of(settings, file)
    try:
        written = read_written(place)
    except RulesFileError as error:
        _put_wrong(place, error, format_)
        raise typer.Exit(1) from None
    if format_ is Format.TEXT:
        put(*_finding_lines(written.warnings))
    state = run(policy_state(settings, place))
    variable = needed_setting(settings, place)
    if format_ is Format.JSON:
        put_json({**_as_json(state), "next": _next(state, place, variable)})
        return
    _put_state(state, _next(state, place, variable))
    if variable:
        put("", LOOKED_AT_WITH, f"  {variable}")


def _next(state: PolicyState, place: RulesPlace, variable: str) -> str | None:
    """Return the command that accepts what was checked; None if nothing waits."""
    if state.is_written:
        return None
    if not variable:
        return COMMAND
    return f"{variable} {COMMAND} {shlex.quote(str(place.path))}"


def _put_wrong(place: RulesPlace, error: RulesFileError, format_: Format) -> None:
    found = error.findings
    if format_ is Format.JSON:
        listed: list[JsonValue] = [_finding_json("error", finding) for finding in found]
        listed += [_finding_json("warning", finding) for finding in error.warnings]
        put_json({"file": str(place.path), "usable": False, "findings": listed})
        return
    put(*_finding_lines(found), *_finding_lines(error.warnings))
    few = len(found) <= MAX_FINDINGS
    number = str(len(found)) if few else f"more than {MAX_FINDINGS}"
    mistakes = f"{number} mistake{'' if number == '1' else 's'}"
    warnings = f", beside {len(error.warnings)} that may be meant" if error.warnings else ""
    put(f"{place.path}: cannot be used: {mistakes}{warnings}")


def _put_state(state: PolicyState, command: str | None) -> None:
    name = str(state.written.path or BUILTIN)
    accepted = accepted_in_words(state.accepted)
    put(f"{name}: can be used, {short(state.written.rules.digest())}")
    if state.is_written:
        force = "it is in force" if state.is_looked_at else "it needs no acceptance"
        put(*wrap(f"It allows nothing that {accepted} do not: {force}.", columns()))
        put_narrowings(state)
        return
    put(f"It {WAITS}: {command}")
    put(*wrap(f"It would allow what {accepted} do not, which are in force until then:", columns()))
    put_table(WIDENING_HEADERS, map(widening_cells, state.standing.waiting))
    put_narrowings(state)


def _finding_lines(findings: Sequence[RuleFinding]) -> Iterator[str]:
    for found in findings:
        line = f"line {found.line}: " if found.line else ""
        yield from wrap(f"{line}{found.where}: {found.message}", columns())
        yield from (f"  {text}" for text in wrap(f"hint: {found.hint}", columns() - 2))


def _as_json(state: PolicyState) -> dict[str, JsonValue]:
    path = state.written.path
    return {
        "file": None if path is None else str(path),
        "usable": True,
        "findings": [_finding_json("warning", found) for found in state.written.warnings],
        "digest": state.written.rules.digest(),
        "in_force": state.is_written and state.is_looked_at,
        "accepted": accepted_json(state.accepted),
        "waiting": [widening_json(widening) for widening in state.standing.waiting],
        "narrows": [widening_json(narrowing) for narrowing in state.narrows],
    }


def _finding_json(level: str, found: RuleFinding) -> dict[str, JsonValue]:
    return {
        "level": level,
        "line": found.line or None,
        "where": found.where,
        "message": found.message,
        "hint": found.hint,
    }
