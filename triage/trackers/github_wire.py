"""One request to GitHub: asked once, within one deadline, and its failure says what it proves.

Why it exists: whether a write may have happened depends on whether a byte of it has left. So the
transport is used by itself: nothing is retried, cached or followed, no proxy and no cookie comes
into it, and each answer is bounded.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from gidgethub import sansio
from pydantic import JsonValue

from triage.addresses import may_connect
from triage.contracts.base import ContractError
from triage.contracts.canonical import canonical_json, parse_json
from triage.trackers.base import TrackerError, TrackerTimeout, TrackerUnavailable
from triage.trackers.github_answers import problem_of

API_VERSION: Final = "2022-11-28"
REQUEST_SECONDS: Final = 10.0
WRITE_SECONDS: Final = 20.0
MAX_ANSWER_BYTES: Final = 4 * 1_048_576
AGENT: Final = "bounded-triage"

_NO_TIMEOUTS: Final = httpx2.Timeout(None).as_dict()
"""One deadline covers everything; the transport's own would each cover a part."""
_ONE_REQUEST: Final = httpx2.Limits(max_connections=1, max_keepalive_connections=1)


@dataclass(frozen=True, kw_only=True)
class Wire:
    """Where GitHub's API is, and what one request may cost.

    Attributes:
        address: as `triage.addresses.api_address` gives it.
        request_seconds: from the connection to the last byte of the answer.
        write_seconds: from the call of a method that writes to the first byte of that request.
        max_bytes: of an answer, after decompression.
    """

    address: str
    request_seconds: float = REQUEST_SECONDS
    write_seconds: float = WRITE_SECONDS

    def send_by(self) -> float:
        """Return until when a write that begins now may be sent, by the loop's clock."""
        return asyncio.get_running_loop().time() + self.write_seconds

    max_bytes: int = MAX_ANSWER_BYTES


@dataclass(frozen=True, kw_only=True)
class Secret:
    """What a request proves its right with: a token, or an App's signed word."""

    token: str | None = None
    jwt: str | None = None

    def __repr__(self) -> str:
        return "Secret(...)"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A successful answer; header names are in lower case.

    Attributes:
        value: its JSON; None if it has no body.
        headers: all of them.
        next_link: the address that it names for the next page, not yet checked.
    """

    value: JsonValue
    headers: Mapping[str, str]
    next_link: str | None


class Conversation:
    """Requests with one right, one after the other; open it with `connected`."""

    def __init__(self, wire: Wire, transport: httpx2.AsyncHTTPTransport, secret: Secret) -> None:
        self.wire = wire
        self._transport = transport
        self._secret = secret

    async def get(
        self,
        template: str,
        names: Mapping[str, str],
        *,
        about: str = "repository",
        query: Mapping[str, str] | None = None,
    ) -> Reply:
        """Read something; `template` is relative, and `names` and `query` fill it.

        Raises:
            TrackerError: nothing that can be used was answered.
        """
        call = _Call(self.wire, about=about)
        return await self._ask(call, "GET", template, {**names, **(query or {})})

    async def send(
        self,
        method: str,
        template: str,
        names: Mapping[str, str],
        *,
        about: str,
        body: JsonValue = None,
        headers: Mapping[str, str] | None = None,
        send_by: float | None = None,
    ) -> Reply:
        """Send something.

        With `send_by` it is a write: what is not answered may have happened, and after that time,
        by the loop's clock, its first byte is not sent any more.

        Raises:
            TrackerError: its kind says what is known of the effect.
        """
        call = _Call(self.wire, about=about, send_by=send_by)
        return await self._ask(call, method, template, names, body, headers)

    async def _ask(
        self,
        call: _Call,
        method: str,
        template: str,
        names: Mapping[str, str],
        body: JsonValue = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        sent = b"" if body is None else canonical_json(body)
        request = httpx2.Request(
            method,
            sansio.format_url(template, names, base_url=self.wire.address),
            headers=self._headers(sent) | dict(headers or {}),
            content=sent,
            extensions={"trace": call.trace, "timeout": _NO_TIMEOUTS},
        )
        status, found, data = await call.exchange(self._transport, request)
        problem = problem_of(status, found, data, about=call.about, writing=call.writing)
        if problem is not None:
            raise problem
        return Reply(value=call.value(found, data), headers=found, next_link=_next(found))

    def _headers(self, body: bytes) -> dict[str, str]:
        headers = sansio.create_headers(AGENT, oauth_token=self._secret.token, jwt=self._secret.jwt)
        headers |= {"x-github-api-version": API_VERSION, "accept-encoding": "gzip"}
        return headers | ({"content-type": "application/json"} if body else {})


class _Call:
    """What is known of one request while it is under way."""

    def __init__(self, wire: Wire, *, about: str, send_by: float | None = None) -> None:
        self.about = about
        self.writing = send_by is not None
        self._wire = wire
        self._deadline = asyncio.get_running_loop().time() + wire.request_seconds
        self._send_by = self._deadline if send_by is None else min(send_by, self._deadline)
        self._sent = False
        self._why = "GitHub did not answer"

    async def exchange(
        self, transport: httpx2.AsyncHTTPTransport, request: httpx2.Request
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send the request and return status, headers and body of the answer."""
        try:
            async with asyncio.timeout_at(self._deadline):
                answer = await transport.handle_async_request(request)
                try:
                    return answer.status_code, _lower(answer.headers), await self._body(answer)
                finally:
                    await answer.aclose()
        except TimeoutError:
            raise self._late() from None
        except httpx2.ConnectError as error:
            self._why = _why_no_connection(error)
            raise self._unanswered() from None
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError, _StopError):
            raise self._unanswered() from None
        except asyncio.CancelledError:
            if self._sent or not self.writing:
                raise
            message = "it was cancelled before it was sent"
            raise TrackerUnavailable(message, effect_possible=False) from None

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Look once more at each step of the transport that leads to the first byte."""
        if event == "connection.connect_tcp.complete":
            stream = info["return_value"]
            if not may_connect(self._wire.address, str(stream.get_extra_info("server_addr")[0])):
                # The transport has not taken it over yet.
                await stream.aclose()
                self._stop("the API's name leads to an address that is not asked")
        elif event.endswith(".send_request_headers.started"):
            # A process that stood still finds out here, before a timer could tell it.
            if asyncio.get_running_loop().time() >= self._send_by:
                self._stop("it was too late to send the request")
            self._sent = True

    def value(self, headers: Mapping[str, str], data: bytes) -> JsonValue:
        """Return the JSON of a successful answer."""
        if not data:
            return None
        try:
            if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                raise ContractError("another type")
            return parse_json(data, "the answer")
        except ContractError:
            message = "the answer is not JSON"
            raise TrackerUnavailable(message, effect_possible=self.writing) from None

    async def _body(self, answer: httpx2.Response) -> bytes:
        body = bytearray()
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > self._wire.max_bytes:
                self._stop("the answer is too large")
        return bytes(body)

    def _stop(self, why: str) -> None:
        self._why = why
        raise _StopError

    def _late(self) -> TrackerError:
        if self.writing and not self._sent:
            return TrackerUnavailable("there was no connection in time", effect_possible=False)
        return TrackerTimeout("GitHub did not answer in time")

    def _unanswered(self) -> TrackerError:
        return TrackerUnavailable(self._why, effect_possible=self.writing and self._sent)


class _StopError(Exception):
    """We end the request ourselves."""


@asynccontextmanager
async def connected(wire: Wire, secret: Secret) -> AsyncIterator[Conversation]:
    """Hold one connection to GitHub, as long as it lasts."""
    transport = httpx2.AsyncHTTPTransport(
        verify=_tls(), trust_env=False, limits=_ONE_REQUEST, retries=0
    )
    async with transport:
        yield Conversation(wire, transport, secret)


@asynccontextmanager
async def nothing_sent_yet() -> AsyncIterator[None]:
    """Say of whatever ends what only reads that nothing was done."""
    try:
        yield
    except TrackerTimeout as error:
        raise TrackerUnavailable(str(error), effect_possible=False) from None
    except asyncio.CancelledError:
        message = "it was cancelled before it was sent"
        raise TrackerUnavailable(message, effect_possible=False) from None


@functools.cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)


def _why_no_connection(error: httpx2.ConnectError) -> str:
    """Say why there is none: what the system says of it is not quoted."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return "GitHub cannot be reached: connection refused"
        cause = cause.__cause__ or cause.__context__
    return "GitHub cannot be reached"


def _lower(headers: httpx2.Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _next(headers: Mapping[str, str]) -> str | None:
    """Return the link to the next page; gidgethub reads it from an answer without a body."""
    _, _, found = sansio.decipher_response(200, {"link": headers.get("link", "")}, b"")
    return found
