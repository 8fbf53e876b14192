"""Declares the commands of whoever operates this system: operations, writes and audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli import data_commands
from triage.cli.output import Format

FormatOption = Annotated[Format, typer.Option("--format", help="How to print the answer.")]
As = Annotated[str | None, typer.Option("--as", help="Who does it.  [default: the user's name]")]
Tenant = Annotated[
    str | None, typer.Option("--tenant", help="Only this tenant's writes.  [default: everybody's]")
]

operations_app = typer.Typer(
    help="List the writes in the operations ledger, or settle one.",
    rich_markup_mode=None,
    invoke_without_command=True,
)
writes_app = typer.Typer(
    help="Stop every write at once, or allow them again.",
    rich_markup_mode=None,
    no_args_is_help=False,
)
audit_app = typer.Typer(
    help="Check the audit trail, or print where it ends.",
    rich_markup_mode=None,
    no_args_is_help=False,
)


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    app.add_typer(operations_app, name="operations")
    app.add_typer(writes_app, name="writes")
    app.add_typer(audit_app, name="audit")


@operations_app.callback()
def operations(
    context: typer.Context,
    attention: Annotated[
        bool, typer.Option("--attention", help="Only those that a person must settle.")
    ] = False,
    format_: FormatOption = Format.TEXT,
) -> None:
    """List the writes in the operations ledger, or settle one that needs a person."""
    if context.invoked_subcommand is None:
        data_commands.operations(attention, format_)


@operations_app.command("reconcile")
def reconcile(
    operation: Annotated[
        str,
        typer.Argument(
            metavar="OPERATION", help="The KEY that is listed, or an id that is one run's."
        ),
    ],
    as_: As = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Read the issue of a write that needs a person, and record what is there."""
    from triage.cli import reconciling  # noqa: PLC0415 - see triage.cli.main

    reconciling.reconcile(operation, as_, format_)


@writes_app.command("stop")
def stop(
    reason: Annotated[str, typer.Option("--reason", help="Why; it is kept in the audit trail.")],
    tenant: Tenant = None,
    as_: As = None,
    create: Annotated[
        bool, typer.Option("--create", help="Make the database if there is none yet.")
    ] = False,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Stop writes from now on; no worker has to be restarted."""
    from triage.cli import stopping  # noqa: PLC0415 - see triage.cli.main

    stopping.stop(reason, tenant, as_, format_, create=create)


@writes_app.command("allow")
def allow(tenant: Tenant = None, as_: As = None, format_: FormatOption = Format.TEXT) -> None:
    """Allow writes again."""
    from triage.cli import stopping  # noqa: PLC0415 - see triage.cli.main

    stopping.allow(tenant, as_, format_)


@writes_app.command("status")
def status(format_: FormatOption = Format.TEXT) -> None:
    """Say whether writes are stopped, by whom and why."""
    from triage.cli import stopping  # noqa: PLC0415 - see triage.cli.main

    stopping.status(format_)


@audit_app.command("verify")
def verify(
    head: Annotated[
        Path | None,
        typer.Option("--head", metavar="FILE", help="What 'audit head' printed; - reads stdin."),
    ] = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Read the whole audit trail, and fail if it does not hold."""
    from triage.cli import auditing  # noqa: PLC0415 - see triage.cli.main

    auditing.verify_trail(head, format_)


@audit_app.command("head")
def head(format_: FormatOption = Format.JSON) -> None:
    """Print where the audit trail ends now, to be kept in another place."""
    from triage.cli import auditing  # noqa: PLC0415 - see triage.cli.main

    auditing.print_head(format_)
