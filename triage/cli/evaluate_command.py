"""Declares the command that evaluates the cases of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli.output import Format

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A fixture, or a data set (.jsonl); docs/reference.md has their formats.",
    ),
]
ModelOption = Annotated[str | None, typer.Option("--model", help="Whom to ask.  [default: rules]")]
PolicyOption = Annotated[
    Path | None, typer.Option("--policy", help="A rules file.  [default: the built-in rules]")
]
CompareOption = Annotated[
    str | None,
    typer.Option("--compare", help="Another model, or rules file (.toml), to compare with."),
]
MinOption = Annotated[
    list[str] | None,
    typer.Option("--min", metavar="METRIC=NUMBER", help="Fail below it: security.right=1."),
]
MaxOption = Annotated[
    list[str] | None,
    typer.Option("--max", metavar="METRIC=NUMBER", help="Fail above it: wrong=0.1."),
]
ThresholdsOption = Annotated[
    Path | None, typer.Option("--thresholds", help="A TOML file of such bounds.")
]
JunitOption = Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML there.")]
ReportOption = Annotated[Path | None, typer.Option("--report", help="Write an HTML page there.")]
JobsOption = Annotated[int | None, typer.Option("--jobs", min=1, max=64, help="Cases at a time.")]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print the answer.")]


def register(app: typer.Typer) -> None:
    """Add this command to `app`."""
    app.command("evaluate")(evaluate)


def evaluate(
    file: FileArgument,
    *,
    model: ModelOption = None,
    policy: PolicyOption = None,
    compare: CompareOption = None,
    minimum: MinOption = None,
    maximum: MaxOption = None,
    thresholds: ThresholdsOption = None,
    junit: JunitOption = None,
    report: ReportOption = None,
    jobs: JobsOption = None,
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
