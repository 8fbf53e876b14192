"""Declares the commands that check something: investigate, replay, schema, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli.output import Format

FormatOption = Annotated[Format, typer.Option("--format", help="How to print the answer.")]


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    app.command("investigate")(investigate)
    app.command("replay")(replay)
    app.command("schema")(schema)
    app.command("doctor")(doctor)


def investigate(
    file: Annotated[Path, typer.Argument(metavar="FIXTURE", help="A fixture of one incident.")],
    format_: FormatOption = Format.TEXT,
) -> None:
    """Run the read-only evidence loop on an incident."""
    from triage.cli import evaluating  # noqa: PLC0415 - see triage.cli.main

    evaluating.investigate(file, format_)


def replay(
    files: Annotated[
        list[Path], typer.Argument(metavar="HISTORY.json ...", help="Recorded histories.")
    ],
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds that one history may take.")
    ] = 60,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Hold recorded histories against today's code."""
    from triage.cli import replaying  # noqa: PLC0415 - see triage.cli.main

    replaying.replay(files, timeout, format_)


def schema(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One contract.  [default: all]")
    ] = None,
    format_: FormatOption = Format.JSON,
) -> None:
    """Print the JSON Schemas of the versioned contracts."""
    from triage.cli import schemas  # noqa: PLC0415 - see triage.cli.main

    schemas.print_schemas(name, format_)


def doctor(format_: FormatOption = Format.TEXT) -> None:
    """Check what everything needs, and say what to do."""
    from triage.cli import doctor as checks  # noqa: PLC0415 - see triage.cli.main

    checks.doctor(format_)
