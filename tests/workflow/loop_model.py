"""What a run must come to, in plain Python: the loop, its versions and its writes.

Why it exists: the workflow is compared with it over random scripts, so it shares no code with the
product and stays simple enough to be believed. Of a response only `reason` is left out.

It knows the approve mode too: `verdicts` are what a person answers to the first, second, ... write
that the run waits on. `broken` are the paths whose lookup fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ROUTES = {"bug", "documentation", "feature", "security_review"}
LABELS = {"bug", "documentation", "feature", "component:api", "component:docs", "component:ui"}
OWNERS = {
    "backend/api.py": "owners-api",
    "docs/getting-started.md": "owners-docs",
    "frontend/ui.tsx": "owners-ui",
}
TOPICS = {"feature": "policy-feature", "security": "policy-security"}
ARGUMENTS = {
    "lookup_component_owner": {"path"},
    "search_triage_policy": {"topic"},
    "apply_labels": {"issue_id", "labels"},
}
TIMEOUT = {"error": "model_timeout"}

Record = dict[str, Any]


@dataclass
class Outcome:
    """All that a run is known to have done."""

    response: Record
    version: int
    mutations: list[Record]
    written: list[str]
    waited_at: list[int]


@dataclass
class LoopModel:
    """One run, played step by step."""

    issue: str
    script: Sequence[Any]
    max_steps: int
    max_model_retries: int
    mode: str
    approvals: Mapping[str, int]
    verdicts: Sequence[str]
    broken: Mapping[str, str]

    version: int = 0
    steps: int = 0
    retries: int = 0
    tools: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    mutations: list[Record] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    applied: dict[str, set[str]] = field(default_factory=dict)
    waited_at: list[int] = field(default_factory=list)

    def play(self) -> Outcome:
        """Play the script to its end."""
        self.version = 1
        response = self._loop()
        return Outcome(response, self.version + 1, self.mutations, self.written, self.waited_at)

    def _loop(self) -> Record:
        deciding = False
        while self.steps < self.max_steps:
            if not deciding:
                self.version += 1
                deciding = True
            item = self.script[self.steps] if self.steps < len(self.script) else None
            self.steps += 1
            if item == TIMEOUT:
                if self.retries == self.max_model_retries:
                    return self._end("review_required", "model_timeout")
                self.retries += 1
                continue
            ending = self._act(item)
            if ending is not None:
                return ending
            deciding = False
        return self._end("failed", "max_steps_exceeded")

    def _act(self, item: Any) -> Record | None:  # noqa: ANN401 - a model may answer anything
        if not isinstance(item, dict) or not self._is_decision(item):
            return self._end("failed", "model_invalid_output")
        if item["kind"] == "call_tool":
            return self._call(item["tool"])
        cited = item["evidence_ids"]
        grounded = set(cited) <= set(self.evidence)
        if item["kind"] == "request_review":
            if not grounded:
                return self._end("failed", "model_invalid_output")
            return self._end("review_required", None, {**item, "labels": [], "owner": None})
        if not cited or not grounded:
            return self._end("failed", "final_output_invalid")
        return self._final(item)

    def _is_decision(self, item: Record) -> bool:
        """Scripts are drawn from the three shapes and from what is obviously none of them."""
        kind = item.get("kind")
        if kind == "call_tool":
            return set(item) == {"kind", "tool"}
        known = {"request_review", "final"}
        return (
            kind in known and item.get("route") in ROUTES and set(item.get("labels", ())) <= LABELS
        )

    def _final(self, item: Record) -> Record:
        missing = set(item["labels"]) - set().union(*self.applied.values())
        if self.mode == "approve" and missing:
            self.tools.append("apply_labels")
            self.version += 1
            ending = self._write(f"op-{self.version}", item["labels"], item)
            if ending is not None:
                return ending
            self.version += 1
        return self._end("completed", None, item)

    def _call(self, call: Record) -> Record | None:
        name, arguments = call["name"], call["arguments"]
        self.tools.append(name)
        if name not in ARGUMENTS:
            return self._end("failed", "unknown_tool")
        if set(arguments) != ARGUMENTS[name] or not all(arguments.values()):
            return self._end("failed", "invalid_tool_arguments")
        self.version += 1
        if name == "apply_labels":
            if self.mode == "shadow" or arguments["issue_id"] != self.issue:
                return self._end("review_required", "policy_block")
            return self._write(call["operation_id"], arguments["labels"], None)
        return self._read(name, arguments)

    def _read(self, name: str, arguments: Record) -> Record | None:
        value = str(arguments.get("path", arguments.get("topic")))
        fault = self.broken.get(value)
        if fault is not None and name == "lookup_component_owner":
            kept = list(dict.fromkeys(self.evidence))
            status = "review_required" if kept else "failed"
            return self._end(status, fault, {"evidence_ids": kept})
        names, default = (OWNERS, "owners-default")
        if name == "search_triage_policy":
            names, default = (TOPICS, "policy-default")
        self.evidence.append(names.get(value, default))
        self.version += 1
        return None

    def _write(
        self, operation_id: str | None, labels: Sequence[str], proposal: Record | None
    ) -> Record | None:
        """The gate, in the order of the design: approval, policy, conflict, a person, the write."""
        at_start = bool(operation_id) and self.approvals.get(operation_id or "") == self.version
        if not operation_id or (self.mode != "approve" and not at_start):
            return self._unapproved(operation_id, proposal)
        if not set(labels) <= LABELS:
            return self._end("review_required", "policy_block", proposal)
        if self.applied.get(operation_id, set(labels)) != set(labels):
            return self._end("review_required", "state_conflict", proposal)
        if not at_start:
            verdict = self.verdicts[len(self.waited_at) % len(self.verdicts)]
            self.waited_at.append(self.version)
            if verdict == "reject":
                return self._unapproved(operation_id, proposal)
        first = operation_id not in self.applied
        reason = "approved" if first else "idempotent_replay"
        self._mutate(operation_id, reason)
        if first:
            self.written += sorted(set(labels) - set(self.written))
        self.applied[operation_id] = set(labels)
        self.evidence.append("mutation-receipt")
        self.version += 1
        return None

    def _unapproved(self, operation_id: str | None, proposal: Record | None) -> Record:
        self._mutate(operation_id, "approval_required")
        return self._end("review_required", "approval_required", proposal)

    def _mutate(self, operation_id: str | None, reason: str) -> None:
        self.mutations.append(
            {
                "operation_id": operation_id,
                "tool": "apply_labels",
                "executed": reason == "approved",
                "authorized": reason != "approval_required",
                "reason": reason,
            }
        )

    def _end(self, status: str, failure: str | None, answer: Record | None = None) -> Record:
        given = answer or {}
        return {
            "run_id": f"run-{self.issue}",
            "request_id": self.issue,
            "status": status,
            "route": given.get("route"),
            "labels": list(given.get("labels", [])),
            "owner": given.get("owner"),
            "evidence_ids": list(given.get("evidence_ids", [])),
            "failure": failure,
            "tool_sequence": self.tools,
            "retries": self.retries,
            "steps": self.steps,
        }
