"""Contracts of the read-only evidence loop (Pattern 01)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, JsonValue, ValidationError

from triage.contracts.base import Contract, ContractError, Name, explain
from triage.contracts.canonical import canonical_json, clean

MAX_LIMIT: Final = 100


class LoopStatus(StrEnum):
    """How an investigation ended."""

    COMPLETE = "complete"
    UNSUPPORTED = "unsupported"
    DENIED = "denied"
    REPEATED = "repeated"
    EXHAUSTED = "exhausted"
    INVALID = "invalid"
    ADAPTER_ERROR = "adapter_error"


class Incident(Contract):
    """What to investigate: references and their values, and at most `limit` decisions.

    With `decisions` the recorded adapter plays them; without, the demo adapter decides.
    """

    incident_id: Name
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)]
    evidence: Annotated[dict[Name, JsonValue], Field(max_length=1_000)]
    decisions: Annotated[tuple[JsonValue, ...], Field(max_length=1_000)] | None = None


class LoopDecision(Contract):
    """One decision of the adapter: read a reference, or finish."""

    action: str
    argument: str | None


class LoopEvent(Contract):
    """One permitted read; values stay out of it."""

    step: int
    tool: str
    ref: str


class LoopResult(Contract):
    """The record of an investigation."""

    status: LoopStatus
    reads: int
    events: tuple[LoopEvent, ...]
    incident_id: str
    adapter: str
    references_digest: str
    limit: int


class OpenedIncident(Contract):
    """Result of `open_incident`: what the loop pins before the first decision."""

    incident_digest: str
    references_digest: str
    adapter: str


class IncidentToStore(Contract):
    """Argument of `open_incident`; a local activity, so it leaves no trace in the history."""

    scope: str
    incident: Incident


class ChooseRequest(Contract):
    """Argument of `choose_action`; the adapter sees the observations made before `step`."""

    scope: str
    step: int
    incident_digest: str


class Choice(Contract):
    """Result of `choose_action`: the adapter's answer as plain data, or that it raised."""

    failed: bool = False
    decision: JsonValue = None


class ReadReference(Contract):
    """Argument of `read_reference`."""

    scope: str
    step: int
    ref: str
    incident_digest: str


class Observed(Contract):
    """Result of `read_reference`: where the value was stored, and its digest."""

    locator: str
    digest: str


def parse_incident(value: JsonValue) -> Incident:
    """Validate a decoded JSON value as an incident.

    Raises:
        ContractError: the message names the field and what is wrong with it.
    """
    if not isinstance(value, dict):
        raise ContractError("incident must be a JSON object")
    try:
        return Incident.model_validate_json(canonical_json(clean(value, "incident")))
    except ValidationError as error:
        raise ContractError(explain(error, "incident", Incident)) from None


def parse_loop_decision(value: JsonValue) -> LoopDecision | None:
    """Return the decision, or None when the value is not one."""
    try:
        return LoopDecision.model_validate_json(canonical_json(clean(value, "decision")))
    except (ContractError, ValidationError):
        return None
