"""`triage policy scan`: labels that automation listens to, and what the rules say of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import typer
from pydantic import JsonValue

from triage.automation.scan import Scan, scan
from triage.automation.uses import LabelUse, Match, Weight
from triage.cli.errors import InputError
from triage.cli.output import Format, columns, put, put_json, put_table, say
from triage.cli.policy_state import policy_state
from triage.cli.running import run
from triage.cli.text import exact, visible, wrap
from triage.contracts.base import MAX_LABEL_CHARS
from triage.policy.narrowing import NOT_LISTED
from triage.policy.rules import LabelEffect, Rules
from triage.rules_place import RulesPlace
from triage.settings import load_settings

HEADERS: Final = ("LABEL", "IN THE RULES", "WHERE", "WHY")
EVERY: Final = "(every label)"
REVIEWED_HINT: Final = "name a file that was looked at, as it is shown: by its path from FOLDER"
_SHOWN: Final = {
    Match.EXACT: "{}",
    Match.PREFIX: "{}*",
    Match.SUFFIX: "*{}",
    Match.PART: "*{}*",
    Match.ANY: EVERY,
}


@dataclass(frozen=True, slots=True)
class Compared:
    """What was found, beside the rules in force.

    Attributes:
        exposed: labels of the rules that a model may propose although something listens to them.
        to_write: labels that the rules should name as control.
    """

    found: Scan
    rules: Rules
    exposed: tuple[str, ...]
    to_write: tuple[str, ...]

    @property
    def triggers(self) -> list[LabelUse]:
        """The uses that start or gate something."""
        return [use for use in self.found.uses if use.weight is Weight.TRIGGERS]


def scan_folder(folder: Path, reviewed: Sequence[str], format_: Format) -> None:
    """Print each label with where something listens to it, and the lines to write.

    Raises:
        InputError: the folder is none, or a reviewed file was not looked at.
        RulesFileError: the rules cannot be used.
        StorageError: it cannot be said which rules are in force.
        typer.Exit: with status 1 if a label that something listens to is descriptive, or if
            anything could not be made out.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: is no folder")
    settings = load_settings()
    rules = run(policy_state(settings, RulesPlace.of(settings))).standing.rules
    compared = compare(_without(scan(folder), reviewed), rules)
    if format_ is Format.JSON:
        put_json(_as_json(compared))
    else:
        _put(compared, folder)
    if compared.exposed or compared.found.problems:
        raise typer.Exit(1)


def compare(found: Scan, rules: Rules) -> Compared:
    """Hold what was found against rules."""
    triggers = [use for use in found.uses if use.weight is Weight.TRIGGERS]
    exposed = [
        label for label in rules.proposable_labels() if any(use.covers(label) for use in triggers)
    ]
    plain = [use for use in triggers if use.match is not Match.ANY]
    named = {
        use.text
        for use in plain
        if use.match is Match.EXACT and 0 < len(use.text) <= MAX_LABEL_CHARS
    }
    covered = {label for label in exposed if any(use.covers(label) for use in plain)}
    listed = _once({*named, *covered}, rules)
    to_write = [label for label in listed if _effect(label, rules) != LabelEffect.CONTROL.value]
    return Compared(found, rules, tuple(exposed), tuple(to_write))


def _without(found: Scan, reviewed: Sequence[str]) -> Scan:
    """Leave out what files of which a person saw more than we can were found to ask openly."""
    for name in reviewed:
        if name not in found.files:
            raise InputError(f"{name}: was not looked at", REVIEWED_HINT)
    kept = [use for use in found.uses if use.match is not Match.ANY or use.file not in reviewed]
    problems = [problem for problem in found.problems if problem.file not in reviewed]
    return replace(found, uses=tuple(kept), problems=tuple(problems))


def _once(labels: Iterable[str], rules: Rules) -> list[str]:
    """Return each label once, whatever its letters; as the rules spell it, if they have it."""
    spelled = {_folded(label): label for label in sorted(labels)}
    spelled |= {_folded(label): label for label in rules.labels if _folded(label) in spelled}
    return sorted(spelled.values())


def _folded(label: str) -> str:
    return label.casefold()


def _effect(label: str, rules: Rules) -> str:
    effects = {_folded(name): effect.value for name, effect in rules.labels.items()}
    return effects.get(_folded(label), NOT_LISTED)


def _put(compared: Compared, folder: Path) -> None:
    triggers = compared.triggers
    if triggers:
        put_table(HEADERS, (_cells(use, compared.rules) for use in triggers))
        put("")
    for problem in compared.found.problems:
        put(*wrap(str(problem), columns()))
    put(*_sorted_by(compared.found.uses))
    count = len(compared.found.files)
    put(f"{count} file{'' if count == 1 else 's'} of automation in {folder.absolute()}")
    if not count:
        say("warning: nothing to look at: is this the root of a checkout?")
    put(*_verdict(compared))


def _cells(use: LabelUse, rules: Rules) -> tuple[str, ...]:
    label = _SHOWN[use.match].format(exact(use.text))
    effect = _effect(use.text, rules) if use.match is Match.EXACT else "-"
    return (label, effect, f"{use.file}:{use.line}", use.why)


def _sorted_by(uses: Sequence[LabelUse]) -> Iterator[str]:
    names = sorted({exact(use.text) for use in uses if use.weight is Weight.SORTS})
    if names:
        yield from wrap(f"Only sorted by, which starts nothing: {', '.join(names)}", columns())


def _verdict(compared: Compared) -> Iterator[str]:
    if compared.exposed:
        names = ", ".join(map(exact, compared.exposed))
        yield from wrap(f"A model may propose what automation may listen to: {names}", columns())
    elif compared.found.problems:
        yield "What could not be read may listen to any label."
    else:
        yield "No label that a model may propose is listened to."
    open_files = sorted({use.file for use in compared.triggers if use.match is Match.ANY})
    if open_files:
        yield from wrap(
            f"Every label may start something in {', '.join(open_files)}: bound it there, or look "
            "at it and name it with --reviewed.",
            columns(),
        )
    if compared.to_write:
        yield from ("To be written into the rules:", "", "[labels]")
        yield from (f'{toml_text(label)} = "{LabelEffect.CONTROL}"' for label in compared.to_write)


def toml_text(text: str) -> str:
    """Return a text as TOML writes it, with everything that cannot be seen escaped."""
    escaped = "".join(
        f"\\{sign}" if sign in {'"', "\\"} else sign if visible(sign) == sign else _escape(sign)
        for sign in text
    )
    return f'"{escaped}"'


def _escape(sign: str) -> str:
    # TOML has no lone surrogates, and neither has any tracker.
    return "\\uFFFD" if unicodedata.category(sign) == "Cs" else f"\\U{ord(sign):08X}"


def _as_json(compared: Compared) -> dict[str, JsonValue]:
    return {
        "files": list(compared.found.files),
        "uses": [
            {
                "label": use.text,
                "match": use.match.value,
                "file": use.file,
                "line": use.line,
                "why": use.why,
                "weight": use.weight.value,
            }
            for use in compared.found.uses
        ],
        "problems": [
            {"file": problem.file, "line": problem.line or None, "message": problem.message}
            for problem in compared.found.problems
        ],
        "exposed": list(compared.exposed),
        "to_write": list(compared.to_write),
    }
