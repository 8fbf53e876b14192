"""The one typed decision that a model may return, and nothing else.

Source: the production agent's AgentDecision, a discriminated union of three exact shapes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

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
_ADAPTER: TypeAdapter[Decision] = TypeAdapter(Annotated[Decision, Field(discriminator="kind")])


def parse_decision(
    value: JsonValue, *, routes: frozenset[str], labels: frozenset[str]
) -> Decision:
    """Read exactly one decision.

    Args:
        value: what the adapter returned, as plain data.
        routes: the routes that the run's policy knows.
        labels: the labels that a model may propose.

    Raises:
        ContractError: `value` is not one decision, or names an unknown route or label. The
            message quotes nothing of it.
    """
    try:
        data = canonical_json(clean(value, "decision"))
        if len(data) > MAX_DECISION_BYTES:
            raise ContractError(f"decision is larger than {MAX_DECISION_BYTES} bytes")
        decision = _ADAPTER.validate_json(data)
    except ValidationError as error:
        raise ContractError(explain(error, "decision")) from None
    if not isinstance(decision, CallTool) and decision.route not in routes:
        raise ContractError("decision.route is not a known route")
    if isinstance(decision, FinalAnswer) and not labels.issuperset(decision.labels):
        raise ContractError("decision.labels holds a label that may not be proposed")
    return decision
