"""The seam between the loop and whatever proposes decisions.

A model adapter is asked once per step and answers with plain data. It has no authority: the
workflow parses the answer, and deterministic code decides what happens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from pydantic import JsonValue

from triage.contracts.base import Contract
from triage.contracts.payloads import DecideResult, Usage
from triage.contracts.request import TriageRequest
from triage.models.quotes import Quote


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
    """Everything an adapter may look at. All text in `request` and `observations` is untrusted.

    `correction` says in our words what was wrong with the answer before; None if nothing was.
    `repository` and `issue_id` say where the issue is kept; both are empty where that is not known.
    """

    step: int
    request: TriageRequest
    observations: tuple[Observation, ...]
    tools: tuple[ToolDescription, ...]
    routes: tuple[str, ...]
    labels: tuple[str, ...]
    correction: str | None = None
    repository: str = ""
    issue_id: str = ""


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


@dataclass(frozen=True, slots=True)
class PaidAnswer:
    """What came of a call that may have cost something.

    Attributes:
        result: the outcome; its `usage` is not looked at.
        used: what the provider says that it used; None if it says nothing that can be believed.
        was_sent: False only where it is certain that nothing has left this machine.
    """

    result: DecideResult
    used: Usage | None = None
    was_sent: bool = True


class PaidModel(ABC):
    """A model that costs something, so that each call is reserved before it is made.

    Attributes:
        name: as options and settings give it.
        revision: what else shapes its answers.
        prompt: the digest of what it is told beside the data.
        prices: which tables it is charged by.
        timeout: what one call may take, from the connection to the last byte.
    """

    name: str
    revision: str
    prompt: str
    prices: str
    timeout: timedelta

    @abstractmethod
    def quote(self, request: ModelRequest) -> Quote:
        """Return what this call may use at most."""

    @abstractmethod
    async def ask(self, request: ModelRequest, quote: Quote) -> PaidAnswer:
        """Make one call, of at most `quote.output_tokens`; what went wrong is in the answer."""

    @abstractmethod
    async def decide(self, request: ModelRequest) -> DecideResult:
        """Make a call that nothing is reserved for: only for who has no budget."""
