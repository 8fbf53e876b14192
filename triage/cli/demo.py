"""`triage demo`: everything that the system does, once, on this machine, leaving nothing behind."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer
from temporalio.client import Client

from triage.cli import demo_report
from triage.cli.clients import bounded, silence_core
from triage.cli.demo_runs import Sample, Written, carry_write_through, triage_samples
from triage.cli.errors import InputError
from triage.cli.evaluating import Tally
from triage.cli.folders import made_folder
from triage.cli.local import (
    WORKER_LOG,
    demo_settings,
    no_configuration,
    server_options,
)
from triage.cli.output import say
from triage.cli.running import run
from triage.embedded import EmbeddedServer, WorkerProcess
from triage.evaluation.fixture import read_fixture
from triage.evaluation.report import Evaluation
from triage.evaluation.runner import evaluate_on
from triage.evaluation.stack import Stack
from triage.resources import fixtures_path
from triage.settings import Settings

CASES: Final = "issue_triage_cases.json"
RUN_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Shown:
    """Everything that the demo has to show."""

    evaluation: Evaluation
    samples: list[Sample]
    written: Written


def demo(keep: Path | None) -> None:
    """Show everything, print what came of it, and leave nothing running.

    Args:
        keep: the folder to leave the data in; None leaves nothing.

    Raises:
        CliError: the folder is in use, or the server or the worker did not start.
        typer.Exit: with 1, when a case failed.
    """
    silence_core()
    with _folder(keep) as folder:
        shown = run(_demo(demo_settings(folder)))
        demo_report.put(shown.evaluation, shown.samples, shown.written, kept=keep)
    if shown.evaluation.exit_status:
        raise typer.Exit(shown.evaluation.exit_status)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="triage-demo-") as name:
            yield Path(name)
        return
    folder = made_folder(keep.expanduser().absolute())
    if any(folder.iterdir()):
        raise InputError(f"{folder}: is not empty", "name a new folder to keep the data in")
    yield folder


async def _demo(settings: Settings) -> Shown:
    folder = settings.home
    stack: Stack | None = None
    say("starting a Temporal server of its own")
    try:
        async with EmbeddedServer(server_options(folder)) as server:
            say("starting a worker")
            environment = server.environment() | no_configuration(folder)
            async with WorkerProcess(settings, environment, log=folder / WORKER_LOG) as worker:
                stack = Stack.watch(server.client, settings, worker, server)
                shown = await stack.run(_show(server.client, settings))
                say("stopping the worker and the server")
    finally:
        if stack is not None:
            await stack.ended()
    return shown


async def _show(client: Client, settings: Settings) -> Shown:
    """Do all three things side by side."""
    say("evaluating the nine cases, triaging the samples and carrying one write through")
    fixture = read_fixture(fixtures_path(CASES))
    async with bounded(RUN_SECONDS), asyncio.TaskGroup() as group:
        evaluation = group.create_task(evaluate_on(client, fixture, settings, Tally()))
        samples = group.create_task(triage_samples(client, settings))
        written = group.create_task(carry_write_through(client, settings))
    return Shown(evaluation.result(), samples.result(), written.result())
