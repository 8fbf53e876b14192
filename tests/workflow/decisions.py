"""The requests and decisions that the tests of the workflows are made of, in short words."""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue

Script = list[JsonValue]

ISSUE: Final = "ISSUE-1"
OPERATION: Final = "op-105"
API_PATH: Final = "backend/api.py"
TIMEOUT: Final[JsonValue] = {"error": "model_timeout"}


def as_object(value: JsonValue) -> dict[str, JsonValue]:
    """See that a value is an object, so that a test can change it."""
    assert isinstance(value, dict)
    return value


def a_request(**changes: JsonValue) -> dict[str, JsonValue]:
    """A request that may run, with some fields changed."""
    return {
        "request_id": ISSUE,
        "title": "The API returns 500",
        "body": "Since yesterday every call fails.",
        "changed_paths": [API_PATH],
        "source": "tests",
        **changes,
    }


def call(
    name: str,
    arguments: dict[str, JsonValue],
    operation_id: str | None = None,
    call_id: str = "call-1",
) -> JsonValue:
    """The model asks for one tool call."""
    return {
        "kind": "call_tool",
        "tool": {
            "call_id": call_id,
            "name": name,
            "arguments": arguments,
            "operation_id": operation_id,
        },
    }


def lookup(path: str = API_PATH) -> JsonValue:
    """The model asks who owns a path; of the default one the evidence is ``owners-api``."""
    return call("lookup_component_owner", {"path": path})


def policy(topic: str = "security") -> JsonValue:
    """The model asks how a topic is routed; the evidence is ``policy-<topic>``."""
    return call("search_triage_policy", {"topic": topic})


def label(*labels: str, operation_id: str | None = OPERATION, issue: str = ISSUE) -> JsonValue:
    """The model asks to put labels on the issue; the evidence is ``mutation-receipt``."""
    names: list[JsonValue] = [*(labels or ("bug",))]
    return call("apply_labels", {"issue_id": issue, "labels": names}, operation_id)


def hand_over(*evidence: str, route: str = "bug", reason: str = "not sure") -> JsonValue:
    """The model leaves the issue to a person."""
    return {
        "kind": "request_review",
        "route": route,
        "reason": reason,
        "evidence_ids": [*evidence],
    }


def final(
    *evidence: str,
    route: str = "bug",
    labels: tuple[str, ...] = ("bug", "component:api"),
    owner: str = "backend-team",
) -> JsonValue:
    """The model ends the run with an answer."""
    return {
        "kind": "final",
        "route": route,
        "labels": [*labels],
        "owner": owner,
        "evidence_ids": [*evidence],
        "reason": "the API's owner takes its bugs",
    }
