"""An independent model of the bounded loop: what a case must come to, in plain Python.

Why it exists: the workflow is compared with it over random scripts, so it shares no code with the
product and stays simple enough to be believed. `reason` is left out: programs do not read it.

Source: the production agent's loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

ROUTES = ("bug", "documentation", "feature", "security_review")
LABELS = ("bug", "documentation", "feature", "component:api", "component:docs", "component:ui")
OWNER_EVIDENCE = {
    "backend/api.py": "owners-api",
    "docs/getting-started.md": "owners-docs",
    "frontend/ui.tsx": "owners-ui",
}
TOPIC_EVIDENCE = {"feature": "policy-feature", "security": "policy-security"}
TOOL_ARGUMENTS: dict[str, dict[str, type]] = {
    "lookup_component_owner": {"path": str},
    "search_triage_policy": {"topic": str},
    "apply_labels": {"issue_id": str, "labels": list},
}
REQUEST_FIELDS = ("request_id", "title", "body", "source", "changed_paths")
DECISION_FIELDS = {
    "call_tool": {"kind", "tool"},
    "request_review": {"kind", "route", "reason", "evidence_ids"},
    "final": {"kind", "route", "labels", "owner", "evidence_ids", "reason"},
}
CALL_FIELDS = {"call_id", "name", "arguments", "operation_id"}

Record = dict[str, Any]


def expected_run(case: Mapping[str, Any]) -> tuple[Record, list[Record]]:
    """Return the response of a case, without its reason, and its mutations."""
    return _Run(case).play()


class _Run:
    def __init__(self, case: Mapping[str, Any]) -> None:
        options = case.get("options", {})
        self.request = case["request"]
        self.script: Sequence[Any] = case["decisions"]
        self.max_steps = options.get("max_steps", 3)
        self.retries_left = options.get("max_model_retries", 1)
        self.approvals = options.get("approvals", {})
        self.effects = options.get("permitted_effects", ["apply_labels"])
        self.steps = self.retries = self.calls = 0
        self.tools: list[str] = []
        self.evidence: set[str] = set()
        self.mutations: list[Record] = []

    def play(self) -> tuple[Record, list[Record]]:
        return self._play(), self.mutations

    def _play(self) -> Record:
        if not _is_request(self.request):
            return self._end("failed", "invalid_input")
        while self.steps < self.max_steps:
            item = self.script[self.steps] if self.steps < len(self.script) else None
            self.steps += 1
            if item == {"error": "model_timeout"}:
                if not self.retries_left:
                    return self._end("review_required", "model_timeout")
                self.retries_left -= 1
                self.retries += 1
                continue
            ending = self._act(item)
            if ending is not None:
                return ending
        return self._end("failed", "max_steps_exceeded")

    def _act(self, item: object) -> Record | None:
        if not _is_decision(item):
            return self._end("failed", "model_invalid_output")
        if item["kind"] == "call_tool":
            return self._call(item["tool"])
        cited = set(item["evidence_ids"])
        if item["kind"] == "request_review":
            if cited - self.evidence:
                return self._end("failed", "model_invalid_output")
            return self._end("review_required", None, item)
        if not cited or cited - self.evidence:
            return self._end("failed", "final_output_invalid")
        return self._end("completed", None, item)

    def _call(self, call: Record) -> Record | None:
        self.tools.append(call["name"])
        if call["name"] not in TOOL_ARGUMENTS:
            return self._end("failed", "unknown_tool")
        if not _fits(call["name"], call["arguments"]):
            return self._end("failed", "invalid_tool_arguments")
        self.calls += 1
        if call["name"] == "apply_labels":
            return self._write(call["operation_id"])
        if call["name"] == "lookup_component_owner":
            self.evidence.add(OWNER_EVIDENCE.get(call["arguments"]["path"], "owners-default"))
        else:
            self.evidence.add(TOPIC_EVIDENCE.get(call["arguments"]["topic"], "policy-default"))
        return None

    def _write(self, operation_id: str | None) -> Record | None:
        if "apply_labels" not in self.effects:
            return self._end("review_required", "policy_block")
        # Validated and deciding, then deciding, pending and complete for each call.
        version = 3 * self.calls
        approved = bool(operation_id) and self.approvals.get(operation_id) == version
        self.mutations.append(
            {
                "operation_id": operation_id,
                "tool": "apply_labels",
                "executed": approved,
                "authorized": approved,
                "reason": "approved" if approved else "approval_required",
            }
        )
        if not approved:
            return self._end("review_required", "approval_required")
        self.evidence.add("mutation-receipt")
        return None

    def _end(self, status: str, failure: str | None, decision: Record | None = None) -> Record:
        given = (
            self.request.get("request_id", "invalid") if isinstance(self.request, dict) else None
        )
        request_id = (
            "invalid" if given is None and not isinstance(self.request, dict) else str(given)
        )
        final = decision or {}
        return {
            "run_id": f"run-{request_id}",
            "request_id": request_id,
            "status": status,
            "route": final.get("route"),
            "labels": final.get("labels", []),
            "owner": final.get("owner"),
            "evidence_ids": final.get("evidence_ids", []),
            "failure": failure,
            "tool_sequence": self.tools,
            "retries": self.retries,
            "steps": self.steps,
        }


def _is_request(value: object) -> bool:
    if not isinstance(value, dict) or sorted(value) != sorted(REQUEST_FIELDS):
        return False
    texts = [value[name] for name in REQUEST_FIELDS[:4]]
    return _are_texts(value["changed_paths"]) and all(
        isinstance(text, str) and text.strip() for text in texts
    )


def _is_decision(value: object) -> TypeGuard[Record]:
    if not isinstance(value, dict) or set(value) != DECISION_FIELDS.get(str(value.get("kind"))):
        return False
    if value["kind"] == "call_tool":
        return _is_call(value["tool"])
    final = value["kind"] == "final"
    return (
        value["route"] in ROUTES
        and _is_text(value["reason"])
        and _are_texts(value["evidence_ids"])
        and (not final or (_is_text(value["owner"]) and _are_labels(value["labels"])))
    )


def _is_call(call: object) -> bool:
    return (
        isinstance(call, dict)
        and set(call) == CALL_FIELDS
        and _is_text(call["call_id"])
        and _is_text(call["name"])
        and isinstance(call["arguments"], dict)
        and isinstance(call["operation_id"], str | None)
    )


def _fits(tool: str, arguments: Record) -> bool:
    kinds = TOOL_ARGUMENTS[tool]
    return set(arguments) == set(kinds) and all(
        _is_text(arguments[name])
        if kind is str
        else bool(arguments[name]) and _are_texts(arguments[name])
        for name, kind in kinds.items()
    )


def _are_labels(value: object) -> bool:
    return isinstance(value, list) and all(item in LABELS for item in value)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(_is_text(item) for item in value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""
