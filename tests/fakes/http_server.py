"""As much of an HTTP server as a fake needs, and all the ways in which an answer can go wrong.

Each connection carries one request. Nothing here knows what is asked for.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from tests.fakes.faults import Fault, Reply

HOST: Final = "127.0.0.1"
MAX_BODY_BYTES: Final = 1_048_576
# Closing with it on and no time to linger sends a reset.
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request; header names are in lower case, and the path is still quoted."""

    id: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """Return the body if it is a JSON object.

        Raises:
            ValueError: it is not one.
        """
        value = json.loads(self.body or b"{}")
        if not isinstance(value, dict):
            raise ValueError("the body is no object")  # noqa: TRY004 - one error for a bad body
        return value


@dataclass(frozen=True, kw_only=True)
class Response:
    """One answer; `sent_as` says how it is to reach the client, and `phrase` what its status is.

    A header that is empty is left out.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    sent_as: Fault = field(default_factory=Fault)
    phrase: str = ""

    @classmethod
    def of(
        cls,
        value: Any,  # noqa: ANN401 - any JSON
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> Self:
        """Return an answer with a JSON body."""
        return cls(status=status, body=json.dumps(value).encode("ascii"), headers=headers or {})

    def head(self) -> bytes:
        """Return the status line and the headers."""
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Content-Length": str(len(self.body)),
            "Connection": "close",
            **self.headers,
        }
        known = {status.value: status.phrase for status in HTTPStatus}
        phrase = self.phrase or known.get(self.status, "Unknown")
        lines = [
            f"HTTP/1.1 {self.status} {phrase}",
            *(f"{k}: {v}" for k, v in headers.items() if v),
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


# A client that went away or speaks no HTTP, and our own end.
_ENDS_CONNECTION: Final = (
    ConnectionError,
    EOFError,
    ValueError,
    asyncio.LimitOverrunError,
    asyncio.CancelledError,
)

Handler = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """Serves `handle` on a port of this machine, as long as it is told to listen."""

    def __init__(self, handle: Handler) -> None:
        self._handle = handle
        self._ids = count(1)
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def address(self) -> str:
        """Where it listens, as a URL without a path."""
        return f"http://{HOST}:{self.port}"

    async def listen(self, port: int = 0) -> None:
        """Take connections, on the same port as before if it did already."""
        if self._server is None:
            wanted = port or self.port
            self._server = await asyncio.start_server(self._serve, HOST, wanted)
            self.port = self._server.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Let the machine refuse new connections; those that are open go on."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def close(self) -> None:
        """Stop listening and cut what is open."""
        self.refuse()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            with suppress(*_ENDS_CONNECTION):
                request = await _read(reader, f"request-{next(self._ids)}")
                await _reply(reader, writer, await self._handle(request))
        finally:
            self._running.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()


async def _read(reader: asyncio.StreamReader, request_id: str) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    pairs = (line.split(":", 1) for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, value in pairs}
    size = int(headers.get("content-length", "0"))
    if size > MAX_BODY_BYTES:
        raise ConnectionError("the body is too large")
    url = urlsplit(target)
    return Request(
        id=request_id,
        method=method,
        path=url.path,
        query={name: values[0] for name, values in parse_qs(url.query).items()},
        headers=headers,
        body=await reader.readexactly(size),
    )


async def _reply(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, response: Response
) -> None:
    """Send `response` in the way that it asks for; the caller closes the connection."""
    whole = response.head() + response.body
    match response.sent_as.reply:
        case Reply.WHOLE:
            writer.write(whole)
        case Reply.HALF:
            writer.write(whole[: -(len(response.body) // 2 + 1)])
        case Reply.DRIP:
            await _drip(writer, whole, response.sent_as.drip_ms / 1_000)
        case Reply.SILENCE:
            await reader.read()
        case Reply.RESET:
            connection: socket.socket = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            writer.transport.abort()
            return
        case Reply.DROP:
            return
    await writer.drain()


async def _drip(writer: asyncio.StreamWriter, data: bytes, pause_seconds: float) -> None:
    for byte in data:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(pause_seconds)
