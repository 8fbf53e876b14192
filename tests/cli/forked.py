"""Asks the fork server for commands; it is started when the first one is run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

_LOADED_AT_START: Final = ("PYTHON", "LC_", "LANG")
"""Variables that count when an interpreter starts, and no longer in one that runs."""


class ForkServer:
    """A process that has loaded everything, and becomes a command when asked."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fork")
        self._path = str(Path(self._folder.name) / "socket")
        program = Path(__file__).with_name("fork_server.py")
        self._process = subprocess.Popen(
            [sys.executable, "-P", program, self._path],
            stdin=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        while not Path(f"{self._path}.ready").exists():
            assert self._process.poll() is None, "the fork server did not start"
            time.sleep(0.01)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def run(
        self, arguments: Sequence[str], env: Mapping[str, str], stdin: bytes, timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Run a command to its end, and return its status and what it printed.

        Raises:
            subprocess.TimeoutExpired: it did not end in time, and was killed.
        """
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            socket.socket(socket.AF_UNIX) as connection,
        ):
            given.write(stdin)
            given.seek(0)
            connection.settimeout(timeout)
            connection.connect(self._path)
            status = self._ask(connection, arguments, env, [given, out, err], timeout)
            out.seek(0)
            err.seek(0)
            return status, out.read(), err.read()

    def _ask(
        self,
        connection: socket.socket,
        arguments: Sequence[str],
        env: Mapping[str, str],
        streams: list[IO[bytes]],
        timeout: float,
    ) -> int:
        request = {"arguments": [*arguments], "environment": dict(env), "folder": env["HOME"]}
        message = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(connection, [message], [stream.fileno() for stream in streams])
        connection.sendall(message[sent:])
        with connection.makefile("r") as answers:
            child = int(answers.readline())
            try:
                return int(answers.readline())
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                raise subprocess.TimeoutExpired([*arguments], timeout) from None


def can_fork(env: Mapping[str, str]) -> bool:
    """Whether a command in this environment starts as one in the tests' own does."""
    return all(
        os.environ.get(name) == value
        for name, value in env.items()
        if name.startswith(_LOADED_AT_START)
    )
