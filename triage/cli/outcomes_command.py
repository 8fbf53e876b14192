"""Declares the command that reads back what became of labels: outcomes."""

from __future__ import annotations

from typing import Annotated

import typer

from triage.cli.output import NumbersFormat


def register(app: typer.Typer) -> None:
    """Add this command to `app`."""
    app.command("outcomes")(outcomes)


def outcomes(
    since: Annotated[
        float,
        typer.Option("--since", metavar="DAYS", min=0, help="How far to look back, in days."),
    ] = 30.0,
    runs: Annotated[
        bool,
        typer.Option("--runs/--no-runs", help="Also what runs suggested and nobody wrote."),
    ] = True,
    format_: Annotated[
        NumbersFormat, typer.Option("--format", help="How to print the answer.")
    ] = NumbersFormat.TEXT,
) -> None:
    """Read back what became of each label that was written or suggested; changes nothing."""
    from triage.cli import outcomes as reading  # noqa: PLC0415 - see triage.cli.main

    reading.outcomes(since, format_, runs=runs)
