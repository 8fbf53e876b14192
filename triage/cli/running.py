"""Runs a command's coroutine so that signals end it in order, and leaves the process safely."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, NoReturn, TextIO, TypeVar

from triage.cli.errors import StoppedError
from triage.leaving import end_leftovers

T = TypeVar("T")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end.

    The first SIGINT, SIGTERM or SIGHUP cancels it, so that whatever it started is ended by its own
    clean-up; later ones are ignored, since clean-up is bounded.

    Raises:
        StoppedError: a signal came.
    """
    return asyncio.run(_until_stopped(main))


async def _until_stopped(main: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(main)
    received: list[int] = []

    def stop(number: int) -> None:
        if not received:
            task.cancel()
        received.append(number)

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        # Whoever runs a command under nohup wants it to outlive the terminal.
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if received:
            raise StoppedError(received[0]) from None
        raise
    finally:
        await end_leftovers()


def leave(status: int) -> NoReturn:
    """End the process with `status`.

    The Temporal SDK's threads can crash an interpreter that shuts down while they run
    (temporalio/sdk-python#300), and the crash would replace the exit status. So once the SDK is
    loaded the process ends without that shutdown.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 1
            _let_go(stream)
    if "temporalio" in sys.modules:
        os._exit(status)
    sys.exit(status)


def _let_go(stream: TextIO) -> None:
    """Let what a stream did not take go nowhere: the interpreter's end would try once more."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
