"""A provider over real HTTP: OpenAI's chat completions and Anthropic's messages, as a plan says.

A plan is a list of answers; each request takes the next one, and the last one stays. What was asked
is kept, so a test can count requests and read what left this machine.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import JsonValue

from tests.fakes.faults import Fault, Reply
from tests.fakes.http_server import HttpServer, Request, Response

OPENAI: Final = "openai"
ANTHROPIC: Final = "anthropic"
PATHS: Final = {OPENAI: "/v1/chat/completions", ANTHROPIC: "/v1/messages"}
SPOKEN: Final = "the provider says: ghp_0123456789abcdefghijklmnopqrstuvwxyz"
"""What every error of this provider holds, and nothing of ours ever may."""

USED: Final = (120, 30)
"""The tokens of input and output that an answer counts."""


@dataclass
class LlmServer:
    """One provider; `plan` is what it answers next."""

    provider: str
    plan: list[Response] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    http: HttpServer = field(init=False)

    def __post_init__(self) -> None:
        self.http = HttpServer(self._answer)

    @property
    def base_url(self) -> str:
        """The address that a setting would name."""
        return self.http.address + ("/v1" if self.provider == OPENAI else "")

    def will(self, *answers: Response) -> None:
        """Answer so from now on."""
        self.plan[:] = answers
        self.requests.clear()

    async def _answer(self, request: Request) -> Response:
        self.requests.append(request)
        if request.path != PATHS[self.provider]:
            return error(self.provider, 404, "not_found_error")
        return self.plan.pop(0) if len(self.plan) > 1 else self.plan[0]

    def asked(self) -> dict[str, Any]:
        """Return the body of the one request that came."""
        [request] = self.requests
        return request.json()


@asynccontextmanager
async def llm_server(provider: str) -> AsyncIterator[LlmServer]:
    """Serve as long as it lasts."""
    server = LlmServer(provider)
    await server.http.listen()
    try:
        yield server
    finally:
        await server.http.close()


def answer(
    provider: str,
    text: str | None,
    *,
    end: str = "",
    used: tuple[int, int] | None = USED,
    **message: JsonValue,
) -> Response:
    """Return a whole answer.

    Args:
        provider: whose protocol.
        text: what the model says; None for nothing at all.
        end: why it stopped, in that protocol's words; an ordinary end by default.
        used: the tokens that are counted; None says nothing of them.
        message: more fields of the message.
    """
    make = _openai if provider == OPENAI else _anthropic
    return Response.of(make(text, end, used, message))


def decided(provider: str, decision: JsonValue, **more: Any) -> Response:  # noqa: ANN401 - as `answer`
    """Return an answer that holds a decision as it is asked for."""
    return answer(provider, json.dumps({"decision": decision}), **more)


def error(
    provider: str,
    status: int,
    kind: str,
    *,
    code: str | None = None,
    message: str = "",
    headers: dict[str, str] | None = None,
) -> Response:
    """Return an error as the provider words it."""
    said: dict[str, JsonValue] = {"type": kind, "message": f"{message} {SPOKEN}"}
    if provider == OPENAI:
        value: JsonValue = {"error": {**said, "code": code, "param": None}}
    else:
        value = {"type": "error", "error": said, "request_id": "req_1"}
    return replace(Response.of(value, status, headers), phrase=SPOKEN)


def sent_as(response: Response, reply: Reply, **more: Any) -> Response:  # noqa: ANN401 - of `Fault`
    """Return the same answer on another way."""
    fault = Fault(reply=reply, **more)
    return Response(
        status=response.status, body=response.body, headers=response.headers, sent_as=fault
    )


def _openai(
    text: str | None, end: str, used: tuple[int, int] | None, more: dict[str, JsonValue]
) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None, **more}
    value: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "fake-1",
        "choices": [{"index": 0, "message": message, "finish_reason": end or "stop"}],
    }
    if used:
        sums = {"prompt_tokens": used[0], "completion_tokens": used[1], "total_tokens": sum(used)}
        value["usage"] = sums
    return value


def _anthropic(
    text: str | None, end: str, used: tuple[int, int] | None, more: dict[str, JsonValue]
) -> dict[str, Any]:
    value: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "fake-1",
        "content": [] if text is None else [{"type": "text", "text": text}],
        "stop_reason": end or "end_turn",
        "stop_sequence": None,
        **more,
    }
    if used:
        value["usage"] = {"input_tokens": used[0], "output_tokens": used[1]}
    return value


Plan = Sequence[Response]
