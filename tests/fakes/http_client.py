"""One HTTP request whose sender always knows whether a byte of it has left.

Why it exists: whether a write may have happened depends on exactly that. So there is one deadline
for everything, no retry, no redirect, no shared connection and no proxy, and a failure says on
which side of the first byte it fell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

MAX_HEAD_BYTES: Final = 65_536


class Step(StrEnum):
    """How far a request has come; a test may stop a process at each."""

    CONNECTED = "connected"
    """Before the last look at the deadline."""
    SENDING = "sending"
    """After it: the next thing is the first byte."""
    SENT = "sent"
    ANSWERED = "answered"


class NotSent(Exception):  # noqa: N818 - names the fault
    """No byte has left: the far end cannot have done anything."""


class NoAnswer(Exception):  # noqa: N818 - names the fault
    """Bytes have left, and no whole answer came.

    Attributes:
        timed_out: whether the deadline ended the wait.
    """

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A whole answer; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request, and what it may cost.

    Attributes:
        method: of the request.
        url: ``http://host:port/path``, already quoted.
        headers: beside those that every request has.
        body: what is sent; empty for nothing.
        deadline: by the loop's clock, for everything from the connection to the last byte.
        max_bytes: of the answer's body.
        on_step: told of every step.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: bytes = b""
    deadline: float
    max_bytes: int
    on_step: Callable[[Step], None] = lambda _step: None

    def to_bytes(self) -> bytes:
        """Return the request as it is sent."""
        url = urlsplit(self.url)
        target = url.path + (f"?{url.query}" if url.query else "")
        headers = {
            "Host": url.netloc,
            "Connection": "close",
            "Content-Length": str(len(self.body)),
            **self.headers,
        }
        lines = [f"{self.method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + self.body


async def exchange(call: Call) -> Answer:
    """Send one request and return its whole answer.

    Raises:
        NotSent: there was no connection, or the deadline passed before the first byte.
        NoAnswer: anything that went wrong after it.
    """
    reader, writer = await _connect(call)
    try:
        call.on_step(Step.CONNECTED)
        # A process that was stopped meanwhile finds out here, before a timer could tell it.
        if asyncio.get_running_loop().time() >= call.deadline:
            raise NotSent("the deadline passed before the first byte")
        call.on_step(Step.SENDING)
        return await _send(call, reader, writer)
    finally:
        writer.transport.abort()


async def _connect(call: Call) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url = urlsplit(call.url)
    try:
        async with asyncio.timeout_at(call.deadline):
            return await asyncio.open_connection(url.hostname, url.port, limit=MAX_HEAD_BYTES)
    except TimeoutError:
        raise NotSent("there was no connection before the deadline") from None
    except OSError:
        raise NotSent("there was no connection") from None


async def _send(call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answer:
    try:
        async with asyncio.timeout_at(call.deadline):
            writer.write(call.to_bytes())
            await writer.drain()
            call.on_step(Step.SENT)
            answer = await _read(reader, call.max_bytes)
    except TimeoutError:
        raise NoAnswer("there was no whole answer before the deadline", timed_out=True) from None
    except (OSError, EOFError):
        raise NoAnswer("the connection ended before the answer did") from None
    except (ValueError, asyncio.LimitOverrunError):
        raise NoAnswer("the answer is no HTTP") from None
    call.on_step(Step.ANSWERED)
    return answer


async def _read(reader: asyncio.StreamReader, max_bytes: int) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(head[0].split(" ", 2)[1])
    pairs = (line.split(":", 1) for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, value in pairs}
    size = int(headers["content-length"]) if "content-length" in headers else None
    if size is not None and size > max_bytes:
        raise NoAnswer("the answer is too large")
    body = await _at_most(reader, max_bytes) if size is None else await reader.readexactly(size)
    return Answer(status=status, headers=headers, body=body)


async def _at_most(reader: asyncio.StreamReader, max_bytes: int) -> bytes:
    """Read to the end of the connection."""
    body = bytearray()
    while chunk := await reader.read(MAX_HEAD_BYTES):
        body += chunk
        if len(body) > max_bytes:
            raise NoAnswer("the answer is too large")
    return bytes(body)
