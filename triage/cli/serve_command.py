"""Declares the command that takes GitHub's deliveries: serve."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add this command to `app`."""
    app.command("serve")(serve)


def serve(
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; TLS is a proxy's task.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 8080,
) -> None:
    """Take deliveries from GitHub and start their runs, until Ctrl-C."""
    from triage.cli import serving  # noqa: PLC0415 - see triage.cli.main

    serving.serve(host, port)
