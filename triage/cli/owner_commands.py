"""Declares the commands about who owns what: owners check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli.output import Format

owners_app = typer.Typer(
    help="Who owns what, by a CODEOWNERS file.", rich_markup_mode=None, no_args_is_help=False
)


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    app.add_typer(owners_app, name="owners")


@owners_app.command("check")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CODEOWNERS file; - reads stdin.")],
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Paths from the root of the repository."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail the check, too.")] = False,
    format_: Annotated[Format, typer.Option("--format", help="How to print the answer.")] = (
        Format.TEXT
    ),
) -> None:
    """Say who owns each path and by which line, and what is wrong with the file."""
    from triage.cli import owners  # noqa: PLC0415 - see triage.cli.main

    owners.check(file, paths or [], format_, strict=strict)
