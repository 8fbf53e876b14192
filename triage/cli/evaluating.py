"""`triage evaluate` and `triage investigate`: run the cases of a file as real workflows."""

from __future__ import annotations

from pathlib import Path

import typer

from triage.cli import evaluating_datasets
from triage.cli.clients import silence_core
from triage.cli.errors import InputError
from triage.cli.evaluating_datasets import Tally as Tally
from triage.cli.evaluating_datasets import Wanted as Wanted
from triage.cli.output import Format, put, put_exactly, put_json, say
from triage.cli.running import run
from triage.evaluation.dataset import SUFFIX
from triage.evaluation.investigate import investigate_file, loop_json, loop_text
from triage.evaluation.runner import evaluate_file
from triage.settings import load_settings


def evaluate(file: Path, wanted: Wanted, format_: Format) -> None:
    """Evaluate a fixture, or a data set.

    Raises:
        InputError: an option is for data sets alone.
        FixtureError: the file is neither.
        typer.Exit: with 1, when a case of a fixture failed, an unauthorised effect ran, or a data
            set does not pass.
    """
    silence_core()
    if file.suffix.lower() == SUFFIX:
        evaluating_datasets.evaluate(file, wanted, format_)
        return
    if wanted != Wanted():
        raise InputError(f"only a data set, a file named *{SUFFIX}, takes other options")
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
