"""Declares the command that continues an ended run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from triage.cli.output import Format


def register(app: typer.Typer) -> None:
    """Add this command to `app`."""
    app.command("resume")(resume)


def resume(
    run: Annotated[
        str, typer.Argument(metavar="ID", help="A workflow id or a request id of an ended run.")
    ],
    request: Annotated[
        Path | None,
        typer.Option(
            "--request",
            help="The request, changed; - reads standard input.  [default: the run's own]",
        ),
    ] = None,
    mode: Annotated[
        Literal["shadow", "suggest", "approve"],
        typer.Option("--mode", help="How far the new run may go."),
    ] = "approve",
    max_steps: Annotated[
        int | None,
        typer.Option("--max-steps", help="At most so many steps.  [default: the rules' number]"),
    ] = None,
    workflow_id: Annotated[
        str | None,
        typer.Option("--id", help="The new run's workflow id.  [default: the run's, with .2]"),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the new run and print its response.")
    ] = False,
    format_: Annotated[Format, typer.Option("--format", help="How to print the answer.")] = (
        Format.TEXT
    ),
) -> None:
    """Continue an ended run as a new one, with its version and its evidence.

    The ended run stays as it is, and none of its approvals counts for the new one. A run that was
    continued already is not continued again: its newest continuation is.
    """
    from triage.cli import resuming  # noqa: PLC0415 - see triage.cli.main

    asked = resuming.Asked(run, request, mode, max_steps, workflow_id)
    resuming.resume(asked, wait=wait, format_=format_)
