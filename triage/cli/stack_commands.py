"""Declares the commands that bring their own server: demo and up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Port = Annotated[int, typer.Option("--port", min=1, max=65535, help="The server's port.")]
UiPort = Annotated[int, typer.Option("--ui-port", min=1, max=65535, help="The UI's port.")]


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    app.command("demo")(demo)
    app.command("up")(up)


def demo(
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="Keep the data in this folder.  [default: nothing is kept]"),
    ] = None,
) -> None:
    """Show everything on this machine, then leave nothing running."""
    from triage.cli import demo as demonstration  # noqa: PLC0415 - see triage.cli.main

    demonstration.demo(keep)


def up(
    port: Port = 7233,
    ui_port: UiPort = 8233,
    data: Annotated[
        Path | None, typer.Option("--data", help="The data folder.  [default: TRIAGE_HOME]")
    ] = None,
) -> None:
    """Run a server with its UI and a worker until Ctrl-C."""
    from triage.cli import up as staying_up  # noqa: PLC0415 - see triage.cli.main

    staying_up.up(port, ui_port, data)
