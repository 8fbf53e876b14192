"""The one typed decision that a model may return, and nothing else.

Source: the production agent's AgentDecision, a discriminated union of three exact shapes.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue, ValidationError

from triage.contracts.base import Contract, ContractError, Name, explain
from triage.contracts.canonical import canonical_json, clean

MAX_DECISION_BYTES = 65_536
MAX_ITEMS = 200

Reason = Annotated[str, Field(min_length=1, max_length=MAX_DECISION_BYTES)]
Names = Annotated[tuple[Name, ...], Field(max_length=MAX_ITEMS)]


class ToolCall(Contract):
    """A proposed call; `arguments` are unchecked until a registered tool's schema accepts them."""

    call_id: Name
    name: Name
    arguments: dict[str, JsonValue]
    operation_id: Annotated[str, Field(max_length=200)] | None


class CallTool(Contract):
    """The model asks for one tool call."""

    kind: Literal["call_tool"]
    tool: ToolCall


class RequestReview(Contract):
    """The model hands the issue to a person."""

    kind: Literal["request_review"]
    route: Name
    reason: Reason
    evidence_ids: Names


class FinalAnswer(Contract):
    """The model proposes route, labels and owner, resting on cited evidence."""

    kind: Literal["final"]
    route: Name
    labels: Names
    owner: Name
    evidence_ids: Names
    reason: Reason


Decision = CallTool | RequestReview | FinalAnswer
_SHAPES: Final[dict[str, type[CallTool | RequestReview | FinalAnswer]]] = {
    "call_tool": CallTool,
    "request_review": RequestReview,
    "final": FinalAnswer,
}


def parse_decision(value: JsonValue, *, routes: frozenset[str], labels: frozenset[str]) -> Decision:
    """Read exactly one decision.

    Args:
        value: what the adapter returned, as plain data.
        routes: the routes that the run's policy knows.
        labels: the labels that a model may propose.

    Raises:
        ContractError: `value` is not one decision, or names an unknown route or label. The
            message quotes nothing of it.
    """
    decision = _shaped(value)
    if not isinstance(decision, CallTool) and decision.route not in routes:
        raise ContractError("decision.route is not a known route")
    if isinstance(decision, FinalAnswer) and not labels.issuperset(decision.labels):
        raise ContractError("decision.labels holds a label that may not be proposed")
    return decision


def _shaped(value: JsonValue) -> Decision:
    """Find the one shape that the kind names and hold the value to it."""
    kind = value.get("kind") if isinstance(value, dict) else None
    shape = _SHAPES.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise ContractError(f"decision.kind must be one of {', '.join(_SHAPES)}")
    data = canonical_json(clean(value, "decision"))
    if len(data) > MAX_DECISION_BYTES:
        raise ContractError(f"decision is larger than {MAX_DECISION_BYTES} bytes")
    try:
        return shape.model_validate_json(data)
    except ValidationError as error:
        raise ContractError(explain(error, "decision", shape, ToolCall)) from None
