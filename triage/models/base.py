"""The seam between the loop and whatever proposes decisions.

A model adapter is asked once per step and answers with plain data. It has no authority: the
workflow parses the answer, and deterministic code decides what happens.
"""

from __future__ import annotations

from typing import Protocol

from pydantic import JsonValue

from triage.contracts.base import Contract
from triage.contracts.payloads import DecideResult
from triage.contracts.request import TriageRequest


class ToolDescription(Contract):
    """A registered tool as a model sees it."""

    name: str
    purpose: str
    arguments: dict[str, str]
    side_effect: bool


class Observation(Contract):
    """What an earlier tool call of this run returned.

    `content` is None when the stored content has expired: unavailable, not empty.
    """

    version: int
    tool: str
    arguments: dict[str, JsonValue]
    evidence_id: str
    locator: str
    content: JsonValue


class ModelRequest(Contract):
    """Everything an adapter may look at. All text in `request` and `observations` is untrusted."""

    step: int
    request: TriageRequest
    observations: tuple[Observation, ...]
    tools: tuple[ToolDescription, ...]
    routes: tuple[str, ...]
    labels: tuple[str, ...]


class ModelAdapter(Protocol):
    """Proposes one decision per call.

    The answer depends on the request alone, so that a retried activity asks again safely.
    """

    name: str
    revision: str

    async def decide(self, request: ModelRequest) -> DecideResult:
        """Return one proposal as plain data; a deadline that ran out is an outcome, not an error.

        The adapter keeps its own deadline and never raises for what a provider did.
        """
        ...
