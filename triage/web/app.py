"""The routes: GitHub's deliveries, and how this process is."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Self

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from triage.web.intake import Intake
from triage.web.replies import Received, Reply
from triage.web.signatures import HEADER

MAX_BODY_BYTES: Final = 6 * 1024 * 1024
"""GitHub's largest issues twice (an edit carries the text before), with every letter escaped."""

MAX_HELD_BYTES: Final = 64 * 1024 * 1024
"""What all bodies may have at one moment, signed or not: strangers fill no memory."""

CROWDED_PAUSE_SECONDS: Final = 5
BODY_SECONDS: Final = 5.0
READY_SECONDS: Final = 1.0
"""How old an answer about the database and the server may be: strangers may ask, too."""
_log = logging.getLogger(__name__)

Checks = Mapping[str, Callable[[], Awaitable[bool]]]


def make_app(intake: Intake, checks: Checks, body_seconds: float = BODY_SECONDS) -> Starlette:
    """Return the application.

    Args:
        intake: takes deliveries.
        checks: what `/readyz` asks, by name; without ``database`` nothing can be taken.
        body_seconds: how long a delivery may take to arrive.
    """
    held = _Held()

    async def deliver(request: Request) -> Response:
        began = time.monotonic()
        with _Body(held) as body:
            reply = await _received(request, body, intake, body_seconds)
        extra = {
            "status": reply.status,
            "outcome": reply.outcome,
            "code": reply.code,
            "duration_ms": round((time.monotonic() - began) * 1000),
        }
        _log.info("answered a delivery", extra=extra)
        return _response(reply)

    app = Starlette(
        routes=[
            Route("/webhooks/github", deliver, methods=["POST"]),
            Route("/healthz", _healthy, methods=["GET"]),
            Route("/readyz", Readiness(checks).answer, methods=["GET"]),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _unexpected},
    )
    # A redirect would name the address that the request itself claims to be for.
    app.router.redirect_slashes = False
    return app


class Readiness:
    """Whether deliveries can be taken, and runs started."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._found: dict[str, bool] = {}
        self._at = -READY_SECONDS
        self._turn = asyncio.Lock()

    async def answer(self, _request: Request) -> Response:
        """Answer 503 if deliveries cannot be taken; without the server they are, and wait."""
        async with self._turn:
            if time.monotonic() - self._at >= READY_SECONDS:
                names = list(self._checks)
                answers = await asyncio.gather(*(self._checks[name]() for name in names))
                self._found = dict(zip(names, answers, strict=True))
                self._at = time.monotonic()
        told = {name: "ok" if found else "unreachable" for name, found in self._found.items()}
        return JSONResponse(told, status_code=200 if self._found["database"] else 503)


class _CrowdedError(Exception):
    """Too much is arriving at the same time."""


class _Held:
    """How many bytes of bodies this process holds."""

    size = 0


class _Body:
    """One body while it is worked on, counted among all."""

    def __init__(self, held: _Held) -> None:
        self._held = held
        self._bytes = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._held.size -= len(self._bytes)
        self._bytes.clear()

    async def read(self, request: Request) -> bytes | None:
        """Return the body, or None as soon as it is plain that it is too large.

        Raises:
            _CrowdedError: others fill the room.
        """
        announced = request.headers.get("content-length", "0")
        if not announced.isdecimal() or int(announced[:20]) > MAX_BODY_BYTES:
            return None
        async for chunk in request.stream():
            if len(self._bytes) + len(chunk) > MAX_BODY_BYTES:
                return None
            if self._held.size + len(chunk) > MAX_HELD_BYTES:
                raise _CrowdedError
            self._held.size += len(chunk)
            self._bytes += chunk
        return bytes(self._bytes)


async def _received(request: Request, body: _Body, intake: Intake, seconds: float) -> Reply:
    try:
        async with asyncio.timeout(seconds):
            content = await body.read(request)
    except TimeoutError:
        return Reply(status=408, outcome="refused", code="slow")
    except ClientDisconnect:
        return Reply(status=400, outcome="refused", code="cut")
    except _CrowdedError:
        pause = CROWDED_PAUSE_SECONDS
        return Reply(status=503, outcome="refused", code="crowded", retry_after=pause)
    if content is None:
        return Reply(status=413, outcome="refused", code="size")
    headers = request.headers
    return await intake.take(
        Received(
            body=content,
            signatures=headers.getlist(HEADER),
            delivery_id=headers.get("x-github-delivery", ""),
            event=headers.get("x-github-event", ""),
            content_type=headers.get("content-type", ""),
        )
    )


def _response(reply: Reply) -> Response:
    headers = {"Retry-After": str(reply.retry_after)} if reply.retry_after else {}
    if reply.code in {"slow", "size", "crowded"}:
        # The rest of the body is not read, so nothing else can come on this connection.
        headers["Connection"] = "close"
    return JSONResponse(reply.document(), status_code=reply.status, headers=headers)


async def _healthy(_request: Request) -> Response:
    return JSONResponse({"process": "ok"})


async def _http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    return JSONResponse({"outcome": "refused"}, status_code=status, headers=headers)


async def _unexpected(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"outcome": "refused", "code": "internal"}, status_code=500)
