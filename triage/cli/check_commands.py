"""Declares the commands that check something: evaluate, investigate, replay, schema, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli.output import Format

FormatOption = Annotated[Format, typer.Option("--format", help="How to print the answer.")]


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    app.command("evaluate")(evaluate)
    app.command("investigate")(investigate)
    app.command("replay")(replay)
    app.command("schema")(schema)
    app.command("doctor")(doctor)


def evaluate(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A fixture, or a data set (.jsonl); docs/reference.md has their formats.",
        ),
    ],
    *,
    model: Annotated[
        str | None, typer.Option("--model", help="Whom to ask.  [default: rules]")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", help="A rules file.  [default: the built-in rules]"),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option("--compare", help="Another model, or rules file (.toml), to compare with."),
    ] = None,
    minimum: Annotated[
        list[str] | None,
        typer.Option("--min", metavar="METRIC=NUMBER", help="Fail below it: security.right=1."),
    ] = None,
    maximum: Annotated[
        list[str] | None,
        typer.Option("--max", metavar="METRIC=NUMBER", help="Fail above it: wrong=0.1."),
    ] = None,
    thresholds: Annotated[
        Path | None, typer.Option("--thresholds", help="A TOML file of such bounds.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML there.")] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write an HTML page there.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, max=64, help="Cases at a time.")
    ] = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Run the cases of a file as workflows and grade them.

    All options but --format are for data sets. The exit status is 1 when a threshold is missed.
    """
    from triage.cli import evaluating  # noqa: PLC0415 - see triage.cli.main

    wanted = evaluating.Wanted(
        model=model,
        policy=policy,
        compare=compare,
        minimum=tuple(minimum or ()),
        maximum=tuple(maximum or ()),
        thresholds=thresholds,
        junit=junit,
        report=report,
        jobs=jobs,
    )
    evaluating.evaluate(file, wanted, format_)


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
