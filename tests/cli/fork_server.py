"""Runs the real command in a forked process: the same `main`, without loading everything anew.

Loading the libraries is most of what a short command costs, and the tests run hundreds. What
depends on how a process starts (`PYTHON...`, the locale) is not seen here, so commands with such
variables are run by their script.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import time
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, NoReturn

PRELOADED: Final = (
    "triage.cli",
    "triage.storage",
    "triage.trackers",
    "triage.models",
    "triage.story",
)
_REQUEST_BYTES: Final = 4_194_304
_LOOK_SECONDS: Final = 2.0
"""How often it is looked whether whoever started this is still there."""


def serve(listener: socket.socket) -> NoReturn:
    """Fork a process for each request, until whoever started this is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    parent = os.getppid()
    listener.settimeout(_LOOK_SECONDS)
    while os.getppid() == parent:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.settimeout(None)
        if os.fork() == 0:
            listener.close()
            with connection:
                _handle(connection)
            os._exit(0)
        connection.close()
    os._exit(0)


def _handle(connection: socket.socket) -> None:
    """Start the command, say its process id, and then its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams = _receive(connection)
    child = os.fork()
    if child == 0:
        connection.close()
        _become(request, streams)
    for stream in streams:
        os.close(stream)
    with contextlib.suppress(OSError):
        connection.sendall(f"{child}\n".encode())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(f"{status}\n".encode())


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    fds = array.array("i")
    message, ancillary, _, _ = connection.recvmsg(_REQUEST_BYTES, socket.CMSG_SPACE(3 * 4))
    for _, _, data in ancillary:
        fds.frombytes(data)
    while not message.endswith(b"\n"):
        message += connection.recv(_REQUEST_BYTES)
    return json.loads(message), fds.tolist()


def _become(request: dict[str, Any], streams: list[int]) -> NoReturn:
    """Be a process that was started with this environment, folder, streams and arguments."""
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update(request["environment"])
        time.tzset()
        os.chdir(request["folder"])
        sys.stdin = TextIOWrapper(os.fdopen(0, "rb"), encoding="utf-8", errors="surrogateescape")
        sys.stdout = TextIOWrapper(os.fdopen(1, "wb"), encoding="utf-8")
        sys.stderr = TextIOWrapper(
            os.fdopen(2, "wb"), encoding="utf-8", errors="backslashreplace", line_buffering=True
        )
        sys.argv = request["arguments"]
        gc.unfreeze()
        importlib.import_module("triage.cli.main").main()
    except SystemExit as error:
        sys.stdout.flush()
        os._exit(error.code if isinstance(error.code, int) else 1)
    except BaseException:  # noqa: BLE001 - nothing may leave this process but its status
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def _preload() -> None:
    for name in PRELOADED:
        package = importlib.import_module(name)
        for found in pkgutil.iter_modules(package.__path__):
            if found.name != "migrations":
                importlib.import_module(f"{name}.{found.name}")
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _preload()
    with socket.socket(socket.AF_UNIX) as place:
        place.bind(sys.argv[1])
        place.listen(64)
        Path(f"{sys.argv[1]}.ready").touch()
        serve(place)
