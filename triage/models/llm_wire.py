"""One HTTP request to a provider: asked once, bounded, and with nothing of this machine in it.

Why it exists: the providers' own clients retry, follow, read the environment and say a lot about
who calls. So they get a transport that sends one request with our own headers, and the key is put
on here: no client holds it, and so no error of theirs can.
"""

from __future__ import annotations

import functools
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import httpx2

from triage.contracts.model_faults import ModelFault

MAX_ANSWER_BYTES: Final = 1_048_576
AGENT: Final = "bounded-triage"
NO_KEY: Final = "none"
"""What the providers' clients are given as the key."""

_KEPT: Final = frozenset({"accept", "anthropic-beta", "content-length", "content-type", "host"})
_ONE_REQUEST: Final = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
_NOT_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol)
# They log addresses and reasons, which a provider words.
_TALKERS: Final = ("anthropic", "httpcore2", "httpx2", "openai", "pydantic_ai")


class _StoppedError(httpx2.TransportError):
    """We end the request ourselves; the channel says why."""


@dataclass(eq=False)
class Channel(httpx2.AsyncBaseTransport):
    """Sends one request with these headers, and takes one answer of bounded size.

    Attributes:
        headers: what the request proves its right with, and its protocol's version.
        max_bytes: of the answer.
        was_sent: whether anything may have left this machine.
        stopped: what the answer was not taken for; None if nothing was wrong with it.
    """

    inner: httpx2.AsyncBaseTransport
    headers: Mapping[str, str]
    max_bytes: int = MAX_ANSWER_BYTES
    was_sent: bool = False
    stopped: ModelFault | None = None
    _is_used: bool = False

    def __repr__(self) -> str:
        return "Channel(...)"

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request; a second one is not sent."""
        if self._is_used:
            raise _StoppedError("one call is one request")
        self._is_used = self.was_sent = True
        ours = {"user-agent": AGENT, "accept-encoding": "identity", **self.headers}
        kept = {name: value for name, value in request.headers.items() if name in _KEPT}
        request.headers = httpx2.Headers({**kept, **ours})
        try:
            response = await self.inner.handle_async_request(request)
        except _NOT_SENT:
            self.was_sent = False
            raise
        return self._bounded(response)

    def _bounded(self, response: httpx2.Response) -> httpx2.Response:
        packed = response.headers.get("content-encoding", "identity") != "identity"
        announced = response.headers.get("content-length", "0")
        if packed or not announced.isdecimal() or int(announced) > self.max_bytes:
            self.stopped = ModelFault.PROTOCOL_ERROR if packed else ModelFault.TOO_LARGE
            stream: httpx2.AsyncByteStream = _Refused(response)
        else:
            stream = _Counted(response, self)
        # Its own words beside the status are left out: they would be logged and quoted.
        return httpx2.Response(response.status_code, headers=response.headers, stream=stream)

    async def aclose(self) -> None:
        """Close the connection."""
        await self.inner.aclose()


@dataclass(eq=False)
class _Refused(httpx2.AsyncByteStream):
    response: httpx2.Response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        nothing: tuple[bytes, ...] = ()
        for part in nothing:
            yield part
        raise _StoppedError("the answer is not taken")

    async def aclose(self) -> None:
        await self.response.aclose()


@dataclass(eq=False)
class _Counted(httpx2.AsyncByteStream):
    response: httpx2.Response
    channel: Channel

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self.response.aiter_raw():
            count += len(chunk)
            if count > self.channel.max_bytes:
                self.channel.stopped = ModelFault.TOO_LARGE
                raise _StoppedError("the answer is too large")
            yield chunk

    async def aclose(self) -> None:
        await self.response.aclose()


@asynccontextmanager
async def opened(headers: Mapping[str, str]) -> AsyncIterator[tuple[Channel, httpx2.AsyncClient]]:
    """Open a channel for one request, and a client on it that follows nothing.

    Proxies and certificates that the environment names are not looked at.
    """
    for name in _TALKERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    inner = httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False, limits=_ONE_REQUEST)
    channel = Channel(inner, headers)
    async with httpx2.AsyncClient(
        transport=channel, trust_env=False, follow_redirects=False, timeout=None
    ) as client:
        yield channel, client


@functools.cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)
