"""Declares the command that changes the request of a run that goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli.output import Format


def register(app: typer.Typer) -> None:
    """Add this command to `app`."""
    app.command("edit")(edit)


def edit(
    run: Annotated[str, typer.Argument(metavar="ID", help="A workflow id or a request id.")],
    request: Annotated[
        Path,
        typer.Argument(
            metavar="REQUEST.json", help="The whole request, changed; - reads standard input."
        ),
    ],
    format_: Annotated[Format, typer.Option("--format", help="How to print the answer.")] = (
        Format.TEXT
    ),
) -> None:
    """Put a changed request into a run that goes on; what waits for approval is withdrawn."""
    from triage.cli import editing  # noqa: PLC0415 - see triage.cli.main

    editing.edit(run, request, format_)
