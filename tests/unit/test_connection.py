"""Connecting to Temporal: what is configured, and every way in which it can fail."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from temporalio.service import RPCStatusCode
from temporalio.testing import WorkflowEnvironment

from tests.clock import PATIENCE_SECONDS
from tests.unit.test_search_attributes import client_of
from tests.workflow.world import STARTUP
from triage.connection import (
    AccessRefused,
    BadConnectionSettings,
    NamespaceNotFound,
    ServerUnreachable,
    TlsFailed,
    _find_namespace,
    check_storage_is_reachable,
    connect,
    is_configured,
    is_local_address,
)
from triage.converter import data_converter
from triage.settings import Settings, SettingsError

SECRET = "sk-never-shown"


@pytest.fixture(autouse=True)
def _nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No connection setting in the environment, and no profile at home."""
    for name in os.environ:
        if name.startswith(("TEMPORAL_", "TRIAGE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "temporal.toml"))


@pytest.fixture(scope="module")
async def dev_server() -> AsyncIterator[str]:
    """The address of a real dev server."""
    binary = shutil.which("temporal", path=sysconfig.get_path("scripts"))
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary, dev_server_startup_timeout=STARTUP
    ) as env:
        yield env.client.service_client.config.target_host


@pytest.fixture
def black_hole() -> Iterator[str]:
    """The address of a socket that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


async def test_connects_to_the_configured_server(
    dev_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has the configured address, the default namespace and our converter."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", dev_server)
    client = await connect()
    assert client.service_client.config.target_host == dev_server
    assert (client.namespace, client.data_converter) == ("default", data_converter)


async def test_reads_the_profile_of_the_temporal_cli(
    dev_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A profile that the temporal CLI wrote is used, once it is named."""
    binary = shutil.which("temporal", path=sysconfig.get_path("scripts"))
    assert binary
    command = ["config", "set", "--profile", "mine", "--prop", "address", "--value", dev_server]
    process = await asyncio.create_subprocess_exec(binary, *command)
    assert await process.wait() == 0
    assert not is_configured()
    monkeypatch.setenv("TEMPORAL_PROFILE", "mine")
    assert is_configured()
    assert (await connect()).service_client.config.target_host == dev_server


def test_nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace alone is no address: commands may still embed a server."""
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "somewhere")
    assert not is_configured()


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("localhost:7233", True),
        ("127.0.0.1:7233", True),
        ("127.8.8.8:1", True),
        ("[::1]:7233", True),
        ("0.0.0.0:7233", True),
        ("localhost.example.org:7233", False),
        ("10.0.0.1:7233", False),
        ("[fe80::1]:7233", False),
        ("temporal:7233", False),
        ("", False),
    ],
)
def test_local_addresses(address: str, local: bool) -> None:
    """Only loopback names and numbers are this machine."""
    assert is_local_address(address) is local


async def test_black_hole_is_unreachable_in_time(
    black_hole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that takes the connection and says nothing is given up within the limit."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", black_hole)
    took: list[float] = []
    # A machine that stands still may be late once; a limit that is not kept is late each time.
    while min(took, default=4.5) >= 4.5 and len(took) < 4:
        started = time.monotonic()
        with pytest.raises(ServerUnreachable, match=r"no answer within 0\.5 s.*triage up"):
            await connect(timeout_seconds=0.5)
        took.append(time.monotonic() - started)
    assert min(took) < 4.5


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1:1", "connection refused"),
        ("no-such-host.invalid:7233", "unknown host name"),
    ],
)
async def test_nobody_there(monkeypatch: pytest.MonkeyPatch, address: str, reason: str) -> None:
    """A closed port or an unknown host is named, with what to do."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    with pytest.raises(ServerUnreachable) as caught:
        await connect()
    assert str(caught.value) == (
        f"no Temporal server at {address} ({reason}): start one with `triage up`,"
        " or set TEMPORAL_ADDRESS"
    )


async def test_another_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port where a web server listens is told apart from one where nobody does."""

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("TEMPORAL_ADDRESS", f"127.0.0.1:{port}")
        with pytest.raises(ServerUnreachable, match="does not answer as a Temporal server"):
            await connect()


async def test_unknown_namespace(dev_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace that the server does not have is an error at once, not in some later call."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", dev_server)
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "nope\x1b[31m")
    with pytest.raises(NamespaceNotFound, match=r"no namespace nope\\x1b\[31m: set TEMPORAL_NAM"):
        await connect()


async def test_tls_against_a_plain_server(dev_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """TLS that cannot come about is told apart from a server that is not there."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", dev_server)
    monkeypatch.setenv("TEMPORAL_TLS", "true")
    with pytest.raises(TlsFailed, match="TEMPORAL_TLS_"):
        await connect()


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"TEMPORAL_PROFILE": "gone"}, "Temporal has no profile gone"),
        ({"TEMPORAL_TLS_SERVER_CA_CERT_PATH": "/gone.pem"}, "cannot be read: /gone.pem"),
        ({"TEMPORAL_TLS_CLIENT_CERT_DATA": SECRET}, "cannot be used"),
        ({"TEMPORAL_ADDRESS": "localhost"}, "is not HOST:PORT: localhost"),
        ({"TEMPORAL_ADDRESS": "http://localhost:7233"}, "without a scheme"),
        ({"TEMPORAL_ADDRESS": "a b:1\x1b"}, r"a b:1\\x1b"),
    ],
)
async def test_settings_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], text: str
) -> None:
    """Connection settings that cannot be used are one line of a SettingsError, without secrets."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadConnectionSettings, match=text) as caught:
        await connect()
    assert SECRET not in str(caught.value)
    assert len(caught.value.problems) == 1


async def test_broken_configuration_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration file with a mistake is named by the place of it, and quoted nowhere."""
    (tmp_path / "temporal.toml").write_text(f'[profile.default]\napi_key = "{SECRET}" x\n')
    with pytest.raises(BadConnectionSettings, match="at line 2, column 28") as caught:
        await connect()
    assert SECRET not in str(caught.value)
    assert is_configured()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (RPCStatusCode.PERMISSION_DENIED, AccessRefused),
        (RPCStatusCode.UNAUTHENTICATED, AccessRefused),
        (RPCStatusCode.UNAVAILABLE, ServerUnreachable),
    ],
)
async def test_refused_namespace(status: RPCStatusCode, error: type[Exception]) -> None:
    """A refusal of the key and a server in trouble are told apart; its words are not repeated."""
    with pytest.raises(error) as caught:
        await _find_namespace(client_of(describe_namespace=status), 1)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "allowed", "refused"),
    [
        ("sqlite:///a.db", False, True),
        ("sqlite:///a.db", True, False),
        ("postgresql://u@h/d", False, False),
    ],
)
def test_sqlite_is_not_shared(url: str, allowed: bool, refused: bool) -> None:
    """A worker of a server elsewhere does not take an SQLite file, unless told so."""
    settings = Settings(database_url=url, allow_remote_sqlite=allowed)
    try:
        check_storage_is_reachable(settings, client_of())
    except SettingsError:
        assert refused
    else:
        assert not refused


CONNECTS_TO_NOBODY = """
import asyncio, sys
from triage.connection import ServerUnreachable, connect, run_async
async def main():
    try:
        await connect(timeout_seconds=0.2)
    except ServerUnreachable:
        return 3
sys.exit(run_async(main()))
"""
WAITS = """
import asyncio
from triage.connection import run_async
async def main():
    try:
        print("ready", flush=True)
        await asyncio.Event().wait()
    finally:
        print("unwound", flush=True)
run_async(main())
"""


def test_short_programs_exit_cleanly(black_hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that gave up on a connection neither crashes nor hangs at its exit."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", black_hole)
    command = [sys.executable, "-c", CONNECTS_TO_NOBODY]
    runs = [
        subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        for _ in range(4)
    ]
    assert [(run.returncode, run.stderr) for run in runs] == [(3, "")] * 4


def test_sigterm_unwinds() -> None:
    """SIGTERM lets a program clean up, and shows in its exit status."""
    with subprocess.Popen(
        [sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout
        assert program.stdout.readline() == "ready\n"
        program.terminate()
        assert program.stdout.read() == "unwound\n"
    assert program.returncode == 143
