"""Small fixtures for the tests of the evaluation."""

from __future__ import annotations

from typing import Any

from triage.evaluation.fixture import LABEL

REQUEST: dict[str, Any] = {
    "request_id": "ISSUE-1",
    "title": "The API answers 500",
    "body": "Creating a thing fails in backend/api.py.",
    "source": "test",
    "changed_paths": ["backend/api.py"],
}
EXPECTED: dict[str, Any] = {
    "status": "completed",
    "route": "bug",
    "failure": None,
    "tool_sequence": ["lookup_component_owner"],
    "retries": 0,
}
RESPONSE: dict[str, Any] = {
    "run_id": "run-ISSUE-1",
    "request_id": "ISSUE-1",
    "status": "completed",
    "route": "bug",
    "labels": ["bug"],
    "owner": "backend-team",
    "evidence_ids": ["owners-api"],
    "failure": None,
    "reason": "The path is the backend team's.",
    "tool_sequence": ["lookup_component_owner"],
    "retries": 0,
    "steps": 2,
}


def read_owner(path: str = "backend/api.py") -> dict[str, Any]:
    """Return a decision to look up an owner."""
    return call("lookup_component_owner", {"path": path})


def write_labels(
    labels: list[str], operation_id: str | None = "op-1", issue: str = "ISSUE-1"
) -> dict[str, Any]:
    """Return a decision to put labels on an issue."""
    return call("apply_labels", {"issue_id": issue, "labels": labels}, operation_id)


def call(name: str, arguments: dict[str, Any], operation_id: str | None = None) -> dict[str, Any]:
    """Return a decision to call a tool."""
    tool = {
        "call_id": "call-1",
        "name": name,
        "arguments": arguments,
        "operation_id": operation_id,
    }
    return {"kind": "call_tool", "tool": tool}


def final(*evidence: str) -> dict[str, Any]:
    """Return a final decision that cites `evidence`."""
    return {
        "kind": "final",
        "route": "bug",
        "labels": ["bug"],
        "owner": "backend-team",
        "evidence_ids": list(evidence),
        "reason": "The path is the backend team's.",
    }


def case(name: str = "case-1", **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Return a case that passes, with some of its parts changed."""
    good = {
        "id": name,
        "request": REQUEST,
        "decisions": [read_owner(), final("owners-api")],
        "expected": EXPECTED,
    }
    return {**good, **changes}


def fixture(*cases: object) -> dict[str, Any]:
    """Return a fixture of these cases."""
    return {"fixture": LABEL, "cases": list(cases)}
