"""Child processes that end when their parent ends, however it ends.

Why it exists: a server or a worker that outlives the command that started it keeps ports, files
and queues. A parent that is killed cannot clean up, so each child is tied to it.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_KEPT_LINES: Final = 40
# Loaded before any fork: a child of a process with threads must not import.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _tie_to_parent(parent: int) -> Callable[[], None] | None:
    """Return what a child runs before its program: the kernel then kills it with its parent."""
    libc = _LIBC
    if libc is None:
        return None

    def tie() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return tie


class ChildProcess:
    """A running child with its last lines of output.

    On Linux it cannot outlive this process. Elsewhere it is stopped in order, and on a kill of
    this process it stops when it next writes to its closed output.
    """

    def __init__(self, process: asyncio.subprocess.Process, log: Path | None) -> None:
        self._process = process
        self._log = log.open("ab") if log else None
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._waiters: list[tuple[str, asyncio.Event]] = []
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        folder: Path | None = None,
        log: Path | None = None,
    ) -> ChildProcess:
        """Start `command`, in a process group of its own so that Ctrl-C reaches only us.

        Args:
            command: the program and its arguments.
            environment: its whole environment.
            folder: its working folder.
            log: a file that its output is appended to.
        """
        process = await asyncio.create_subprocess_exec(
            *map(str, command),
            env=dict(environment),
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_tie_to_parent(os.getpid()),
        )
        return cls(process, log)

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The child's exit status; None while it runs."""
        return self._process.returncode

    def last_lines(self, count: int = 5) -> str:
        """Return the last lines that the child wrote."""
        return "\n".join(list(self._lines)[-count:])

    async def wait(self) -> int:
        """Wait until the child has ended and return its exit status."""
        status = await self._process.wait()
        await self._reader
        return status

    async def wait_for_line(self, text: str) -> bool:
        """Wait until the child writes a line with `text`; False if it ends without."""
        if any(text in line for line in self._lines):
            return True
        seen = asyncio.Event()
        self._waiters.append((text, seen))
        waiting = asyncio.create_task(seen.wait())
        await asyncio.wait({waiting, self._reader}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return seen.is_set()

    async def stop(self, grace_seconds: float) -> int:
        """Ask the child to end, and kill it after `grace_seconds`."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()
        try:
            async with asyncio.timeout(grace_seconds):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
        return await self.wait()

    async def _read(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        while chunk := await _line(stream):
            line = chunk.decode(errors="replace").rstrip()
            self._lines.append(line)
            if self._log:
                self._log.write(chunk)
                self._log.flush()
            for text, seen in self._waiters:
                if text in line:
                    seen.set()
        if self._log:
            self._log.close()


async def _line(stream: asyncio.StreamReader) -> bytes:
    """Read a line, or what fits of one that is too long."""
    try:
        return await stream.readuntil()
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await stream.read(error.consumed)
