"""Declares the command that tells a run's story."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli.output import Format


def explain(
    run: Annotated[
        str | None, typer.Argument(metavar="ID", help="A workflow id or a request id.")
    ] = None,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id",
            "--run",
            help="One execution of it alone.  [default: the latest and those that it carries on]",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="A recorded history instead; - reads standard input."),
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="How to print the answer.")] = (
        Format.TEXT
    ),
) -> None:
    """Tell a run's story from its history: what was proposed, decided and written, and why."""
    from triage.cli import explaining  # noqa: PLC0415 - see triage.cli.main

    explaining.explain(run, run_id, file, format_)
