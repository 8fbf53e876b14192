"""Child processes that end when their parent ends, however it ends.

Why it exists: a server or a worker that outlives the command that started it keeps ports, files
and queues.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, Self

_KEPT_LINES: Final = 40
_TETHER: Final = (sys.executable, "-I", "-S", str(Path(__file__).with_name("tether.py")))


def tether() -> tuple[str, ...]:
    """Return what a command begins with if it is to end with the thread that starts it."""
    return (*_TETHER, str(os.getpid()))


class ChildProcess:
    """A running child with its last lines of output; it cannot outlive this process.

    Start it from a thread that lives as long as the child shall: on Linux it ends with that thread.
    """

    def __init__(self, process: Process, log: BinaryIO | None) -> None:
        self._process = process
        self._log = log
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._waiters: list[tuple[str, asyncio.Event]] = []
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        log: Path | None = None,
    ) -> Self:
        """Start `command` in a session of its own, so that Ctrl-C reaches only us.

        Args:
            command: the full path of the program and its arguments.
            environment: its whole environment.
            log: a file that its output is appended to; its folder must exist.
        """
        stream = log.open("ab") if log else None
        try:
            process = await asyncio.create_subprocess_exec(
                *tether(),
                *map(str, command),
                env=dict(environment),
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=STDOUT,
                start_new_session=True,
            )
        except BaseException:
            if stream:
                stream.close()
            raise
        return cls(process, stream)

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The child's exit status; None while it runs."""
        return self._process.returncode

    def last_lines(self, count: int = 5) -> str:
        """Return the last lines that the child wrote, with all that cannot be seen left out."""
        return "\n".join(list(self._lines)[-count:])

    async def wait(self) -> int:
        """Wait until the child has ended and return its exit status."""
        status = await self._process.wait()
        await asyncio.shield(self._reader)
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
        """Ask the child to end, kill it after `grace_seconds`, and return its exit status."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()
        try:
            async with asyncio.timeout(grace_seconds):
                await self._process.wait()
        except TimeoutError:
            self._kill()
        except asyncio.CancelledError:
            self._kill()
            raise
        return await self.wait()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    async def _read(self) -> None:
        stream = self._process.stdout
        while stream and (chunk := await _line(stream)):
            if self._log:
                self._log.write(chunk)
                self._log.flush()
            line = "".join(filter(str.isprintable, chunk.decode(errors="replace")))
            if line:
                self._lines.append(line)
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
