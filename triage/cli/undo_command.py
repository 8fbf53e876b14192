"""Declares the command that takes a write back: undo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli.output import Format


def register(app: typer.Typer) -> None:
    """Add this command to `app`."""
    app.command("undo")(undo)


def undo(
    operation: Annotated[
        str,
        typer.Argument(
            metavar="OPERATION",
            help="The KEY that 'triage operations' shows, or an id such as op-6 that is one run's.",
        ),
    ],
    workflow: Annotated[
        str | None, typer.Option("--workflow", metavar="ID", help="Only of this run.")
    ] = None,
    as_: Annotated[
        str | None, typer.Option("--as", help="Who does it.  [default: the user's name]")
    ] = None,
    sign: Annotated[
        bool, typer.Option("--sign", help="Sign it, which it needs where approvals are signed.")
    ] = False,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="The key to sign with.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    format_: Annotated[Format, typer.Option("--format", help="How to print the answer.")] = (
        Format.TEXT
    ),
) -> None:
    """Take the labels of a write off again, as far as they are still ours.

    It shows what it will do, and asks. Where nobody can be asked, nothing is done without --yes.
    """
    from triage.cli import undoing  # noqa: PLC0415 - see triage.cli.main

    given = undoing.Given(operation, workflow, as_, sign=sign, key=key, yes=yes)
    undoing.undo(given, format_)
