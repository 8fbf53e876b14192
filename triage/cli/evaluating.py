"""`triage evaluate` and `triage investigate`: run a fixture's cases as real workflows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import typer

from triage.cli.clients import silence_core
from triage.cli.output import Format, put, put_exactly, put_json, say
from triage.cli.running import run
from triage.evaluation.investigate import investigate_file, loop_json, loop_text
from triage.evaluation.runner import evaluate_file
from triage.settings import load_settings

TENTHS: Final = 10


class Tally:
    """Says how many cases are done, at most ten times."""

    def __init__(self) -> None:
        self._told = -1

    def __call__(self, done: int, total: int) -> None:
        """Take note that `done` of `total` cases are done."""
        tenth = done * TENTHS // max(total, 1)
        if tenth > self._told:
            self._told = tenth
            say(f"evaluated {done} of {total} cases")


def evaluate(file: Path, format_: Format) -> None:
    """Evaluate a fixture.

    Raises:
        FixtureError: the file is no fixture.
        typer.Exit: with 1, when a case failed or an unauthorised effect ran.
    """
    silence_core()
    say(f"evaluating {file}")
    evaluation = run(evaluate_file(file, load_settings(), Tally()))
    if format_ is Format.JSON:
        put_json(evaluation.to_json())
    else:
        put_exactly(evaluation.text())
    if evaluation.exit_status:
        raise typer.Exit(evaluation.exit_status)


def investigate(file: Path, format_: Format) -> None:
    """Investigate an incident; every way in which the loop ends is an answer.

    Raises:
        FixtureError: the file is no incident.
    """
    silence_core()
    say(f"investigating {file}")
    result = run(investigate_file(file, load_settings()))
    if format_ is Format.JSON:
        put_json(loop_json(result))
    else:
        put(loop_text(result))
