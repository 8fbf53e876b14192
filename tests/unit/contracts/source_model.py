"""What the source document's program accepts, restated as plainly as possible.

Independent of the code under test: no pydantic, no limits, no messages. Where the program would
crash on an unhashable route or label, the value is not accepted.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

REQUEST_TEXTS = ("request_id", "title", "body", "source")
ROUTES = frozenset({"bug", "documentation", "feature", "security_review"})
LABELS = frozenset(
    {"bug", "documentation", "feature", "component:api", "component:docs", "component:ui"}
)


def accepts_request(value: JsonValue) -> bool:
    """Whether the program takes `value` as a request."""
    if not isinstance(value, dict) or set(value) != {*REQUEST_TEXTS, "changed_paths"}:
        return False
    return _are_texts(value["changed_paths"]) and all(
        isinstance(text, str) and text.strip() != ""
        for text in (value[name] for name in REQUEST_TEXTS)
    )


def accepts_decision(value: JsonValue) -> bool:
    """Whether the program takes `value` as one decision."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str):
        return False
    checks = {"call_tool": _is_call, "request_review": _is_review, "final": _is_final}
    return kind in checks and checks[kind](value)


def accepts_arguments(kinds: Mapping[str, str], arguments: Mapping[str, JsonValue]) -> bool:
    """Whether the program lets a tool with these argument kinds run with `arguments`."""
    return set(kinds) == set(arguments) and all(
        _is_text(arguments[name])
        if kind == "str"
        else _are_texts(arguments[name]) and arguments[name] != []
        for name, kind in kinds.items()
    )


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str) and value != ""


def _are_texts(value: JsonValue) -> bool:
    return isinstance(value, list) and all(_is_text(item) for item in value)


def _is_one_of(value: JsonValue, known: frozenset[str]) -> bool:
    return isinstance(value, str) and value in known


def _is_call(value: dict[str, JsonValue]) -> bool:
    tool = value.get("tool")
    if set(value) != {"kind", "tool"} or not isinstance(tool, dict):
        return False
    return (
        set(tool) == {"call_id", "name", "arguments", "operation_id"}
        and _is_text(tool["call_id"])
        and _is_text(tool["name"])
        and isinstance(tool["arguments"], dict)
        and isinstance(tool["operation_id"], str | None)
    )


def _is_review(value: dict[str, JsonValue]) -> bool:
    return (
        set(value) == {"kind", "route", "reason", "evidence_ids"}
        and _is_one_of(value["route"], ROUTES)
        and _is_text(value["reason"])
        and _are_texts(value["evidence_ids"])
    )


def _is_final(value: dict[str, JsonValue]) -> bool:
    labels = value.get("labels")
    return (
        set(value) == {"kind", "route", "labels", "owner", "evidence_ids", "reason"}
        and _is_one_of(value["route"], ROUTES)
        and _is_text(value["owner"])
        and _is_text(value["reason"])
        and _are_texts(value["evidence_ids"])
        and isinstance(labels, list)
        and all(_is_one_of(label, LABELS) for label in labels)
    )
