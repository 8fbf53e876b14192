"""Declares the commands about the rules: policy check, show, accept and scan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli.output import Format

FormatOption = Annotated[Format, typer.Option("--format", help="How to print the answer.")]
File = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE", help="A rules file.  [default: TRIAGE_POLICY, else triage.toml]"
    ),
]

policy_app = typer.Typer(
    help="Check, show and accept the rules that runs are held to.",
    rich_markup_mode=None,
    no_args_is_help=False,
)


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    app.add_typer(policy_app, name="policy")


@policy_app.command("check")
def check(file: File = None, format_: FormatOption = Format.TEXT) -> None:
    """Say what is wrong with a rules file, and what it would allow beyond the accepted rules."""
    from triage.cli import policy_checking  # noqa: PLC0415 - see triage.cli.main

    policy_checking.check(file, format_)


@policy_app.command("show")
def show(file: File = None, format_: FormatOption = Format.TEXT) -> None:
    """Show the rules in force and where they come from, or those in a file."""
    from triage.cli import policy_showing  # noqa: PLC0415 - see triage.cli.main

    policy_showing.show(file, format_)


@policy_app.command("accept")
def accept(
    file: File = None,
    as_: Annotated[
        str | None, typer.Option("--as", help="Who accepts.  [default: the user's name]")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    create: Annotated[
        bool, typer.Option("--create", help="Make the database if there is none yet.")
    ] = False,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Show what a rules file would allow beyond the accepted rules, and accept it."""
    from triage.cli import policy_accepting  # noqa: PLC0415 - see triage.cli.main

    policy_accepting.accept(file, as_, format_, yes=yes, create=create)


@policy_app.command("scan")
def scan(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A checkout, at its root.  [default: here]")
    ] = Path(),
    reviewed: Annotated[
        list[str] | None,
        typer.Option(
            "--reviewed",
            metavar="PATH",
            help="A file of which a person saw that it concerns the labels that it names alone.",
        ),
    ] = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Find labels that a repository's automation listens to, and compare with the rules."""
    from triage.cli import policy_scanning  # noqa: PLC0415 - see triage.cli.main

    policy_scanning.scan_folder(folder, reviewed or [], format_)
