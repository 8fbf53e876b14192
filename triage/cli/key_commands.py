"""Declares the commands about the keys that sign approvals: new, list and retire."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli.output import Format

FormatOption = Annotated[Format, typer.Option("--format", help="How to print the answer.")]

keys_app = typer.Typer(
    help="The keys that sign approvals, and the keyring of those that count.",
    rich_markup_mode=None,
    no_args_is_help=False,
)


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    app.add_typer(keys_app, name="keys")


@keys_app.command("new")
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Whose it is: the name that runs show.")
    ],
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", help="The new file of the private key.  [default: TRIAGE_HOME/keys/NAME.json]"
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject",
            help="An id that the person keeps for life.  [default: as in the keyring, or NAME]",
        ),
    ] = None,
    vouches_for: Annotated[
        list[str] | None,
        typer.Option(
            "--vouches-for",
            metavar="TRACKER",
            help="For a service: it signs for people of this tracker, and never for itself.",
        ),
    ] = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Make a key pair: a private file, and an entry in the keyring."""
    from triage.cli import keys  # noqa: PLC0415 - see triage.cli.main

    keys.new(name, key, keys.Owner(subject, tuple(vouches_for or ())), format_)


@keys_app.command("list")
def list_keys(format_: FormatOption = Format.TEXT) -> None:
    """List the keys in the keyring."""
    from triage.cli import keys  # noqa: PLC0415 - see triage.cli.main

    keys.list_all(format_)


@keys_app.command("retire")
def retire(
    kid: Annotated[
        str,
        typer.Argument(
            metavar="KID",
            help="The key's id (not a person's name), as 'triage keys list' prints it.",
        ),
    ],
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="When, such as 2030-01-31T12:00Z.  [default: now]"
        ),
    ] = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Let a key sign nothing more, from now or a later time on."""
    from triage.cli import keys  # noqa: PLC0415 - see triage.cli.main

    keys.retire(kid, at, format_)
