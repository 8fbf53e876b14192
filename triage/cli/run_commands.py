"""Declares the commands about runs: start, list, show, approve and reject."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from triage.cli.explain_command import explain
from triage.cli.output import Format

if TYPE_CHECKING:
    from triage.cli.orders import Checked, Order
    from triage.storage.under_way import UnderWay

FormatOption = Annotated[Format, typer.Option("--format", help="How to print the answer.")]
Run = Annotated[str, typer.Argument(metavar="ID", help="A workflow id or a request id.")]
OperationName = Annotated[
    str, typer.Argument(metavar="OPERATION", help="The operation id that 'show' prints.")
]
Version = Annotated[
    int | None,
    typer.Option("--version", min=0, help="The version at which it is pending; op-6@6 names both."),
]
As = Annotated[str | None, typer.Option("--as", help="Who decides.  [default: the user's name]")]
Digest = Annotated[
    str | None, typer.Option("--digest", help="The digest that was reviewed, as 'show' prints it.")
]
Sign = Annotated[bool, typer.Option("--sign", help="Sign it with your own key.")]
Key = Annotated[
    Path | None,
    typer.Option(
        "--key",
        help="Its file.  [default: TRIAGE_SIGNING_KEY, or the only one in TRIAGE_HOME/keys]",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be decided on, and send nothing.")
]
Beside = Annotated[
    bool,
    typer.Option(
        "--anyway", help="Start it beside the run that a delivery about this issue started."
    ),
]
Note = Annotated[str | None, typer.Option("--note", help="A remark that is kept with it.")]

STDIN: Final = "-"


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    app.command("start")(start)
    app.command("list")(list_runs)
    app.command("show")(show)
    app.command("explain")(explain)
    app.command("approve")(approve)
    app.command("reject")(reject)


def start(
    request: Annotated[
        Path,
        typer.Argument(
            metavar="REQUEST.json",
            help="The request; - reads standard input. Or an issue: REPOSITORY#NUMBER.",
        ),
    ],
    mode: Annotated[
        Literal["shadow", "suggest", "approve"] | None,
        typer.Option("--mode", help="How far the run may go.  [default: the rules' mode]"),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="The model.  [default: the worker's]")
    ] = None,
    options: Annotated[
        Path | None, typer.Option("--options", help="A JSON file of run options.")
    ] = None,
    workflow_id: Annotated[
        str | None, typer.Option("--id", help="The workflow id.  [default: triage-REQUEST_ID]")
    ] = None,
    *,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the run and print its response.")
    ] = False,
    anyway: Beside = False,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Start a triage, and with --wait print its response."""
    from triage.cli import orders  # noqa: PLC0415 - see triage.cli.main

    order = orders.Order(request, mode, model, options, workflow_id)
    is_issue = orders.names_an_issue(order)
    checked, beside = _of_issue(order) if is_issue else (orders.check(order), None)

    from triage.cli import starting  # noqa: PLC0415 - a client, only for a request that may run

    starting.start(checked, wait=wait, format_=format_, beside=None if anyway else beside)


def _of_issue(order: Order) -> tuple[Checked, UnderWay]:
    from triage.cli import from_issue, orders  # noqa: PLC0415 - see triage.cli.main
    from triage.cli.running import run  # noqa: PLC0415 - likewise

    named = run(from_issue.read(order))
    return orders.complete(order, named.request, named.where), named.under_way


def list_runs(
    pending: Annotated[
        bool, typer.Option("--pending", help="Only runs that wait for a person.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 100,
    format_: FormatOption = Format.TEXT,
) -> None:
    """List the runs: those that go on, then those that ended; of both the latest first."""
    from triage.cli import listing  # noqa: PLC0415 - see triage.cli.main

    listing.list_runs(pending_only=pending, limit=limit, format_=format_)


def show(run: Run, format_: FormatOption = Format.TEXT) -> None:
    """Show where a run stands and what it waits for."""
    from triage.cli import showing  # noqa: PLC0415 - see triage.cli.main

    showing.show(run, format_)


def approve(
    run: Run,
    operation: OperationName,
    version: Version = None,
    as_: As = None,
    digest: Digest = None,
    note: Note = None,
    *,
    sign: Sign = False,
    key: Key = None,
    dry_run: DryRun = False,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway",
            help="Send it though writes are stopped, or the issue is another or cannot be shown.",
        ),
    ] = False,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Show one pending operation, and approve exactly what was shown."""
    from triage.cli import reviewing  # noqa: PLC0415 - see triage.cli.main
    from triage.cli.operation_names import split_version  # noqa: PLC0415 - likewise

    given = reviewing.Given(
        "approve", *split_version(operation, version), as_, digest, note, sign, key, dry_run, anyway
    )
    reviewing.review(run, given, format_)


def reject(
    run: Run,
    operation: OperationName,
    version: Version = None,
    as_: As = None,
    digest: Digest = None,
    note: Note = None,
    *,
    sign: Sign = False,
    key: Key = None,
    dry_run: DryRun = False,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Show one pending operation, and reject exactly what was shown."""
    from triage.cli import reviewing  # noqa: PLC0415 - see triage.cli.main
    from triage.cli.operation_names import split_version  # noqa: PLC0415 - likewise

    given = reviewing.Given(
        "reject", *split_version(operation, version), as_, digest, note, sign, key, dry_run
    )
    reviewing.review(run, given, format_)
