"""The shape that a model's answer must have: one object with one decision, every part bounded.

Why it exists: a provider that follows a schema wastes fewer steps. Nothing rests on it: the loop
reads the answer strictly whatever the provider promised.
"""

from __future__ import annotations

import re
from typing import Final

from pydantic import JsonValue

from triage.contracts.base import MAX_NAME_CHARS
from triage.models.base import ModelRequest, ToolDescription
from triage.policy.tools import MAX_LIST_ITEMS, Kind

ROOT: Final = "decision"
MAX_REASON: Final = 600
MAX_LABELS: Final = 20
MAX_EVIDENCE: Final = 50
MAX_ARGUMENT: Final = 400
MAX_CHOICES: Final = 200
"""Of routes and of labels: providers bound how many values a schema may list."""

_ISSUE: Final = "issue_id"
_NAME: Final[JsonValue] = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARS}
_REASON: Final[JsonValue] = {"type": "string", "minLength": 1, "maxLength": MAX_REASON}
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")


def offered(request: ModelRequest) -> tuple[ToolDescription, ...]:
    """Return the tools that a model may ask for: those that read what it can name.

    The issue itself is one of these where it is known which one it is.
    """
    return tuple(
        tool
        for tool in request.tools
        if not tool.side_effect and (request.issue_id or _ISSUE not in tool.arguments)
    )


def schema_of(request: ModelRequest) -> dict[str, JsonValue]:
    """Return the JSON Schema of an answer to this question.

    While nothing was returned there is nothing to rest an answer on, so none can be said: a model
    reads or hands over.
    """
    shapes: list[JsonValue] = [_call(tool, request) for tool in offered(request)]
    route = _one_of(request.routes)
    shapes.append(
        _object(
            kind={"const": "request_review"},
            route=route,
            reason=_REASON,
            evidence_ids=_evidence(request),
        )
    )
    if request.observations:
        labels: JsonValue = _one_of(request.labels)
        shapes.append(
            _object(
                kind={"const": "final"},
                route=route,
                labels={"type": "array", "items": labels, "maxItems": MAX_LABELS},
                owner=_NAME,
                evidence_ids={**_evidence(request), "minItems": 1},
                reason=_REASON,
            )
        )
    root: dict[str, JsonValue] = {ROOT: {"anyOf": shapes}}
    return _object(**root)


def _evidence(request: ModelRequest) -> dict[str, JsonValue]:
    """Return the shape of what is cited: ids that were returned.

    A provider may put a schema where it puts what we say. So ids that a tool of somebody else's
    made of words are not listed in it, and any name is accepted then.
    """
    ids = tuple(dict.fromkeys(item.evidence_id for item in request.observations))
    plain = all(_PLAIN_ID.fullmatch(name) for name in ids)
    items = _one_of(ids) if plain else _NAME
    return {"type": "array", "items": items, "maxItems": min(len(ids), MAX_EVIDENCE)}


def _object(**properties: JsonValue) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _one_of(names: tuple[str, ...]) -> JsonValue:
    if 0 < len(names) <= MAX_CHOICES:
        return {"type": "string", "enum": list(names)}
    return _NAME


def _call(tool: ToolDescription, request: ModelRequest) -> JsonValue:
    """Return the shape of a call; a read of the issue is of the run's own."""
    arguments = {name: _argument(kind) for name, kind in tool.arguments.items()}
    if _ISSUE in arguments and _PLAIN_ID.fullmatch(request.issue_id):
        arguments[_ISSUE] = {"const": request.issue_id}
    call = _object(
        call_id={"type": "string", "minLength": 1, "maxLength": 40},
        name={"const": tool.name},
        arguments=_object(**arguments),
        operation_id={"type": "null"},
    )
    return _object(kind={"const": "call_tool"}, tool=call)


def _argument(kind: str) -> JsonValue:
    text: JsonValue = {"type": "string", "minLength": 1, "maxLength": MAX_ARGUMENT}
    if kind == Kind.TEXT_LIST:
        return {"type": "array", "items": text, "minItems": 1, "maxItems": MAX_LIST_ITEMS}
    return text
