"""Declares the commands about stored things: the local tracker's issues, and operations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from triage.cli.output import Format

FormatOption = Annotated[Format, typer.Option("--format", help="How to print the answer.")]
Repository = Annotated[
    str, typer.Option("--repository", help="The repository that the issue belongs to.")
]
IssueName = Annotated[
    str, typer.Argument(metavar="REPOSITORY#NUMBER", help="The issue, such as local#7.")
]
Labels = Annotated[
    list[str], typer.Argument(metavar="LABEL", help="The labels; letter case does not matter.")
]
As = Annotated[str | None, typer.Option("--as", help="Who does it.  [default: the user's name]")]
DEFAULT_REPOSITORY: Final = "local"

issues_app = typer.Typer(
    help="The issues of the local tracker.", rich_markup_mode=None, no_args_is_help=False
)


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    app.add_typer(issues_app, name="issues")


@issues_app.command("add")
def add_issue(
    title: Annotated[str, typer.Option("--title", help="The issue's title.")],
    body: Annotated[str | None, typer.Option("--body", help="The issue's text.")] = None,
    body_file: Annotated[
        Path | None, typer.Option("--body-file", help="A file with the text; - reads stdin.")
    ] = None,
    number: Annotated[
        str | None, typer.Option("--number", help="Its number.  [default: the next one]")
    ] = None,
    repository: Repository = DEFAULT_REPOSITORY,
    author: Annotated[str, typer.Option("--author", help="Who opened it.")] = "",
    *,
    create: Annotated[
        bool, typer.Option("--create", help="Make the database if there is none yet.")
    ] = False,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Open an issue in the local tracker. One of --body and --body-file is needed."""
    from triage.cli import issues  # noqa: PLC0415 - see triage.cli.main

    text = issues.body_of(body, body_file)
    new = issues.NewIssue(repository, number, title, text, author)
    issues.add(new, format_, create=create)


@issues_app.command("list")
def list_issues(
    repository: Repository = DEFAULT_REPOSITORY, format_: FormatOption = Format.TEXT
) -> None:
    """List the issues of a repository."""
    from triage.cli import issues  # noqa: PLC0415 - see triage.cli.main

    issues.list_all(repository, format_)


@issues_app.command("show")
def show_issue(
    number: Annotated[str, typer.Argument(metavar="N", help="The issue's number.")],
    repository: Repository = DEFAULT_REPOSITORY,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Show an issue with its labels and what happened to them."""
    from triage.cli import issues  # noqa: PLC0415 - see triage.cli.main

    issues.show(repository, number, format_)


@issues_app.command("label")
def label_issue(
    name: IssueName, labels: Labels, as_: As = None, format_: FormatOption = Format.TEXT
) -> None:
    """Put labels on an issue, as a person does. The repository must have them."""
    from triage.cli import issue_changes  # noqa: PLC0415 - see triage.cli.main

    issue_changes.label(name, labels, as_, format_)


@issues_app.command("unlabel")
def unlabel_issue(
    name: IssueName, labels: Labels, as_: As = None, format_: FormatOption = Format.TEXT
) -> None:
    """Take labels off an issue, as a person does. No run puts them back afterwards."""
    from triage.cli import issue_changes  # noqa: PLC0415 - see triage.cli.main

    issue_changes.unlabel(name, labels, as_, format_)


@issues_app.command("close")
def close_issue(name: IssueName, as_: As = None, format_: FormatOption = Format.TEXT) -> None:
    """Close an issue."""
    from triage.cli import issue_changes  # noqa: PLC0415 - see triage.cli.main

    issue_changes.set_state(name, "closed", as_, format_)


@issues_app.command("reopen")
def reopen_issue(name: IssueName, as_: As = None, format_: FormatOption = Format.TEXT) -> None:
    """Open a closed issue again."""
    from triage.cli import issue_changes  # noqa: PLC0415 - see triage.cli.main

    issue_changes.set_state(name, "open", as_, format_)


def operations(
    attention: Annotated[
        bool, typer.Option("--attention", help="Only those that a person must settle.")
    ] = False,
    format_: FormatOption = Format.TEXT,
) -> None:
    """List the writes in the operations ledger."""
    from triage.cli import operations_list  # noqa: PLC0415 - see triage.cli.main

    operations_list.list_operations(attention_only=attention, format_=format_)
