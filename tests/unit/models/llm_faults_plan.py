"""Everything that a provider may do, in both protocols, and the one name that each has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from tests.fakes.faults import Reply
from tests.fakes.http_server import Response
from tests.fakes.llm_server import ANTHROPIC, OPENAI, SPOKEN, answer, decided, error, sent_as
from triage.contracts.model_faults import ModelFault as F

DECISION: Final[JsonValue] = {
    "kind": "request_review",
    "route": "bug",
    "reason": "so",
    "evidence_ids": [],
}


@dataclass(frozen=True)
class Row:
    """One thing that a provider does.

    Attributes:
        what: for the test's name.
        fault: its name.
        plan: what is answered, by provider; one that is not there does not do this.
        pause: the seconds that are asked for.
    """

    what: str
    fault: F
    plan: dict[str, Response]
    pause: int | None = None


def _both(what: str, fault: F, make: object, pause: int | None = None) -> Row:
    assert callable(make)
    return Row(what, fault, {name: make(name) for name in (OPENAI, ANTHROPIC)}, pause)


def _status(
    what: str,
    fault: F,
    status: int,
    kind: str,
    *,
    after: str = "",
    pause: int | None = None,
) -> Row:
    headers = {"retry-after": after} if after else {}
    return _both(what, fault, lambda name: error(name, status, kind, headers=headers), pause)


def _body(what: str, fault: F, body: bytes, status: int = 200, **headers: str) -> Row:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return _both(what, fault, lambda _: Response(status=status, body=body, headers=named))


def _good(name: str) -> Response:
    return decided(name, DECISION)


_LONG = "x" * 70_000
ROWS: Final = (
    _both("silence", F.TIMEOUT, lambda name: sent_as(_good(name), Reply.SILENCE)),
    _both("a slow drip", F.TIMEOUT, lambda name: sent_as(_good(name), Reply.DRIP, drip_ms=20)),
    _status("408", F.TIMEOUT, 408, "timeout_error"),
    _status("429", F.RATE_LIMITED, 429, "rate_limit_error"),
    _status("429 with a pause", F.RATE_LIMITED, 429, "rate_limit_error", after="7", pause=7),
    _status("429 for ages", F.RATE_LIMITED, 429, "rate_limit_error", after="999999999", pause=900),
    _status("429 with nonsense", F.RATE_LIMITED, 429, "rate_limit_error", after="-3"),
    _status("500", F.OVERLOADED, 500, "api_error"),
    _status("502", F.OVERLOADED, 502, "api_error"),
    _status("503", F.OVERLOADED, 503, "overloaded_error", after="2", pause=2),
    _status("529", F.OVERLOADED, 529, "overloaded_error"),
    _both("a dropped connection", F.UNREACHABLE, lambda name: sent_as(_good(name), Reply.DROP)),
    _both("a reset", F.UNREACHABLE, lambda name: sent_as(_good(name), Reply.RESET)),
    _both("half an answer", F.UNREACHABLE, lambda name: sent_as(_good(name), Reply.HALF)),
    Row(
        "no money",
        F.QUOTA,
        {
            OPENAI: error(OPENAI, 429, "insufficient_quota", code="insufficient_quota"),
            ANTHROPIC: error(
                ANTHROPIC, 400, "invalid_request_error", message="Your credit balance is too low"
            ),
        },
    ),
    _status("402", F.QUOTA, 402, "billing_error"),
    _status("401", F.AUTH, 401, "authentication_error"),
    _status("403", F.AUTH, 403, "permission_error"),
    Row(
        "too long",
        F.CONTEXT_TOO_LONG,
        {
            OPENAI: error(OPENAI, 400, "invalid_request_error", code="context_length_exceeded"),
            ANTHROPIC: error(
                ANTHROPIC, 400, "invalid_request_error", message="prompt is too long: 9 > 8"
            ),
        },
    ),
    _status("413", F.CONTEXT_TOO_LONG, 413, "request_too_large"),
    _status("400", F.REJECTED, 400, "invalid_request_error"),
    _status("404", F.REJECTED, 404, "not_found_error"),
    _status("422", F.REJECTED, 422, "invalid_request_error"),
    Row(
        "a refusal",
        F.REFUSAL,
        {
            OPENAI: answer(OPENAI, None, refusal=SPOKEN),
            ANTHROPIC: answer(ANTHROPIC, None, end="refusal"),
        },
    ),
    Row(
        "a filter",
        F.CONTENT_FILTER,
        {OPENAI: answer(OPENAI, SPOKEN, end="content_filter")},
    ),
    Row(
        "a filter that rejects",
        F.CONTENT_FILTER,
        {
            OPENAI: error(OPENAI, 400, "invalid_request_error", code="content_filter"),
            ANTHROPIC: error(
                ANTHROPIC,
                400,
                "invalid_request_error",
                message="Output blocked by content filtering policy",
            ),
        },
    ),
    Row(
        "cut off",
        F.CUT_OFF,
        {
            OPENAI: answer(OPENAI, '{"decision": {"ki', end="length"),
            ANTHROPIC: answer(ANTHROPIC, '{"decision": {"ki', end="max_tokens"),
        },
    ),
    _both("prose", F.NOT_JSON, lambda name: answer(name, f"I think that {SPOKEN}")),
    _both("nothing", F.NOT_JSON, lambda name: answer(name, "")),
    _both("half JSON", F.NOT_JSON, lambda name: answer(name, '{"decision": ')),
    _both("a key twice", F.NOT_JSON, lambda name: answer(name, '{"decision": 1, "decision": 2}')),
    _both("no envelope", F.SCHEMA_VIOLATED, lambda name: answer(name, json.dumps(DECISION))),
    _both("a list", F.SCHEMA_VIOLATED, lambda name: answer(name, "[]")),
    _both(
        "more than a decision",
        F.SCHEMA_VIOLATED,
        lambda name: answer(name, '{"decision": {}, "apply": true}'),
    ),
    _both("a long decision", F.TOO_LARGE, lambda name: decided(name, _LONG)),
    _body("a huge answer", F.TOO_LARGE, b" " * 1_100_000),
    _body("an endless answer", F.TOO_LARGE, b" " * 1_100_000, Content_Length=""),
    _body("a packed answer", F.PROTOCOL_ERROR, b"\x1f\x8b", content_encoding="gzip"),
    _body("no JSON", F.PROTOCOL_ERROR, SPOKEN.encode()),
    _body("an empty object", F.PROTOCOL_ERROR, b"{}"),
    _body("text", F.PROTOCOL_ERROR, SPOKEN.encode(), content_type="text/plain"),
    _body("a redirect", F.PROTOCOL_ERROR, b"{}", 307, location="/v1/elsewhere"),
    _body("a teapot", F.PROTOCOL_ERROR, b"{}", 418),
    Row(
        "no choices",
        F.PROTOCOL_ERROR,
        {
            OPENAI: Response.of(
                {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
            ),
            ANTHROPIC: Response.of(
                {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": None}
            ),
        },
    ),
    Row(
        "other types",
        F.PROTOCOL_ERROR,
        {
            OPENAI: answer(OPENAI, None, content={"said": SPOKEN}),
            ANTHROPIC: answer(ANTHROPIC, None, content=[{"type": SPOKEN, "text": 5}]),
        },
    ),
    Row(
        "a tool call",
        F.PROTOCOL_ERROR,
        {
            ANTHROPIC: answer(
                ANTHROPIC,
                None,
                end="tool_use",
                content=[{"type": "tool_use", "id": "t", "name": "x", "input": {}}],
            ),
            OPENAI: answer(
                OPENAI,
                None,
                end="tool_calls",
                tool_calls=[
                    {"id": "t", "type": "function", "function": {"name": "x", "arguments": "{}"}}
                ],
            ),
        },
    ),
)
