"""Declares the commands that read issues from a tracker by themselves: poll and backfill."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from triage.cli.output import Format

FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ"]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print the answer.")]


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    app.command("poll")(poll)
    app.command("backfill")(backfill)


def poll(
    repositories: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="REPOSITORY",
            help="Whose issues to look through.  [default: TRIAGE_POLL_REPOSITORIES]",
        ),
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            "--since", formats=FORMATS, help="Where a first look begins, in UTC.  [default: now]"
        ),
    ] = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Look once for issues whose delivery never came, and have their runs started."""
    from triage.cli import polling  # noqa: PLC0415 - see triage.cli.main

    polling.poll(tuple(repositories or ()), since, format_)


def backfill(
    repository: Annotated[str, typer.Argument(metavar="REPOSITORY", help="Whose issues to try.")],
    *,
    since: Annotated[
        datetime | None,
        typer.Option("--since", formats=FORMATS, help="Only issues opened then or later, in UTC."),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option("--until", formats=FORMATS, help="Only issues opened before, in UTC."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=100_000, help="At most so many, the newest ones.")
    ] = 100,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            help="Of the runs: shadow, suggest or approve; nothing is written in any of them.",
        ),
    ] = "shadow",
    parallel: Annotated[
        int, typer.Option("--parallel", min=1, max=50, help="So many runs go on at once.")
    ] = 4,
    per_minute: Annotated[
        int, typer.Option("--per-minute", min=1, max=6_000, help="So many are started a minute.")
    ] = 60,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Try the rules and the model on old issues, and compare with the labels they have."""
    from triage.cli import backfilling  # noqa: PLC0415 - see triage.cli.main

    wanted = backfilling.wanted_of(repository, since, until, limit, mode)
    backfilling.backfill(wanted, parallel, per_minute, format_)
