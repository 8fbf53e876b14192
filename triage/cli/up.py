"""`triage up`: a server with its UI and a worker, until somebody ends it."""

from __future__ import annotations

import asyncio
import shlex
import time
from pathlib import Path
from typing import Final

from triage.cli.clients import silence_core
from triage.cli.errors import InputError, StoppedError, UnreachableError
from triage.cli.folders import made_folder
from triage.cli.local import (
    SERVER_LOG,
    WORKER_LOG,
    command_name,
    remove_unused,
    sample,
    server_options,
    sole_use,
    up_settings,
)
from triage.cli.output import put, say
from triage.cli.policy_state import read_written
from triage.cli.running import run
from triage.contracts.names import writes_queue
from triage.embedded import EmbeddedServer, PortBusy, WorkerProcess
from triage.rules_place import RulesPlace
from triage.settings import Settings, load_settings, strange

SHORT_LIFE_SECONDS: Final = 10.0
MAX_SHORT_LIVES: Final = 3
PAUSE_SECONDS: Final = 1.0
DEFAULT_PORT: Final = "7233"


def up(port: int, ui_port: int, data: Path | None) -> None:
    """Serve until Ctrl-C or SIGTERM, and end everything that was started.

    Raises:
        CliError: a port or the folder is taken, the server ended, or the worker keeps ending.
    """
    if port == ui_port:
        raise InputError(f"the server and its UI cannot share port {port}")
    settings = up_settings(data)
    # The worker would end by them, but a server would have been started for it.
    read_written(RulesPlace.of(settings))
    silence_core()
    say(*(f"warning: {problem}" for problem in strange()))
    was_there = settings.home.exists()
    try:
        with sole_use(made_folder(settings.home)):
            run(_up(settings, port, ui_port))
    except StoppedError:
        say("everything is stopped")
    except PortBusy:
        if not was_there:
            remove_unused(settings.home)
        raise


async def _up(settings: Settings, port: int, ui_port: int) -> None:
    say("starting the Temporal server")
    async with EmbeddedServer(server_options(settings.home, port, ui_port)) as server:
        try:
            await _keep_working(server, settings)
        except asyncio.CancelledError:
            say("stopping")
            raise


async def _keep_working(server: EmbeddedServer, settings: Settings) -> None:
    """Run a worker, and another when it dies; one that dies again and again is given up."""
    short_lives, greeted = 0, False
    while short_lives < MAX_SHORT_LIVES:
        say("starting a worker")
        began = time.monotonic()
        log = settings.home / WORKER_LOG
        async with WorkerProcess(settings, server.environment(), log=log) as worker:
            say(f"the worker is ready (process {worker.pid})")
            if not greeted:
                put(*_greeting(server, settings))
                greeted = True
            await _until_one_ends(server, worker, settings.home / SERVER_LOG)
            lived = time.monotonic() - began
            say(f"the worker ended by itself; its log is {log}", *_indented(worker.last_lines()))
        short_lives = short_lives + 1 if lived < SHORT_LIFE_SECONDS else 0
        await asyncio.sleep(PAUSE_SECONDS)
    raise UnreachableError("the worker keeps ending, so nothing can be done here")


async def _until_one_ends(server: EmbeddedServer, worker: WorkerProcess, log: Path) -> None:
    """Wait for the worker's end.

    Raises:
        UnreachableError: the server ended.
    """
    ends = [asyncio.create_task(server.wait()), asyncio.create_task(worker.wait())]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if ends[0].done():
            raise UnreachableError(f"the Temporal server ended by itself; its log is {log}")
    finally:
        for end in ends:
            end.cancel()


def _greeting(server: EmbeddedServer, settings: Settings) -> list[str]:
    return [
        f"Temporal server   {server.address}, namespace default",
        f"Temporal UI       {server.ui_address}",
        f"task queues       {settings.task_queue}, {writes_queue(settings.task_queue)}",
        f"data              {settings.home}",
        "",
        "In another terminal:",
        *(f"  {line}" for line in _commands(server, settings)),
        "",
        "Ctrl-C ends everything.",
    ]


def _commands(server: EmbeddedServer, settings: Settings) -> list[str]:
    """Return what to type next, from a shell that knows neither this server nor this folder."""
    name, variables = command_name(), []
    if server.address.rpartition(":")[2] != DEFAULT_PORT:
        variables.append(f"TEMPORAL_ADDRESS={server.address}")
    if settings.home != load_settings().home:
        variables.append(f"TRIAGE_HOME={shlex.quote(str(settings.home))}")
    return [
        *([f"export {' '.join(variables)}"] if variables else []),
        f"{name} start {sample('requests', 'api-bug.json')} --mode approve",
        f"{name} list --pending",
        f"{name} approve ISSUE-201 op-6 --version 6",
        f"{name} show ISSUE-201",
    ]


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
