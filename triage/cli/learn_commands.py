"""Declares the commands about classifiers that learn from labelled issues: learn, weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli.output import Format

FormatOption = Annotated[Format, typer.Option("--format", help="How to print the answer.")]
WeightsFile = Annotated[
    Path, typer.Argument(metavar="WEIGHTS", help="A file that 'triage learn --output' wrote.")
]

weights_app = typer.Typer(
    help="Store what was learned where workers find it, or look at it.",
    rich_markup_mode=None,
    no_args_is_help=False,
)


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    app.command("learn")(learn)
    app.add_typer(weights_app, name="weights")


def learn(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="ISSUES",
            help="Labelled issues, a JSON object a line: title, body, label, group; - reads stdin.",
        ),
    ],
    test: Annotated[
        Path | None,
        typer.Option("--test", metavar="ISSUES", help="Other labelled issues to measure by."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="WEIGHTS", help="Write what was learned to this file."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write every figure to this file, as JSON."),
    ] = None,
    target: Annotated[
        float,
        typer.Option("--target", min=0.5, max=1.0, help="How much of the answers has to be right."),
    ] = 0.9,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Teach a small classifier by labelled issues, and say how good it is."""
    from triage.cli import learning  # noqa: PLC0415 - see triage.cli.main

    learning.learn(file, test, target, format_, output=output, report=report)


@weights_app.command("store")
def store(file: WeightsFile, format_: FormatOption = Format.TEXT) -> None:
    """Check weights and put them into the workers' database, and print the name of the model."""
    from triage.cli import weights  # noqa: PLC0415 - see triage.cli.main

    weights.store(file, format_)


@weights_app.command("show")
def show(
    weights_: Annotated[
        str,
        typer.Argument(
            metavar="WEIGHTS",
            help="Such a file, or the digest or model's name of what is stored.",
        ),
    ],
    format_: FormatOption = Format.TEXT,
) -> None:
    """Show what a classifier looks at: labels, threshold and the heaviest features."""
    from triage.cli import weights  # noqa: PLC0415 - see triage.cli.main

    weights.show(weights_, format_)
