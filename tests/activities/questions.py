"""A question to a model, and adapters that answer it as a test says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import JsonValue
from temporalio.testing import ActivityEnvironment

from activities.asking import ahead
from activities.decide import DecideActivities
from activities.services import Services
from tests.workflow.decisions import a_request, hand_over
from triage.contracts.canonical import canonical_json
from triage.contracts.payloads import DecideOutcome, DecideRequest, DecideResult
from triage.models.base import ModelRequest
from triage.models.factory import KINDS, ModelKind
from triage.policy.rules import BUILTIN_RULES
from triage.storage.documents import DocumentKind

SCOPE = "5c0fe" * 6
DECISION = DecideResult(outcome=DecideOutcome.DECISION, decision=hand_over())
Answer = Callable[[ModelRequest], Awaitable[Any]]


@dataclass
class Adapter:
    """An adapter that does what a test says."""

    answer: Answer
    name: str = "test"
    revision: str = "1"

    async def decide(self, request: ModelRequest) -> DecideResult:
        """Do it."""
        result: DecideResult = await self.answer(request)
        return result


@dataclass
class Asking:
    """A stored request, and a way to ask an adapter about it."""

    services: Services
    request: DecideRequest
    monkeypatch: pytest.MonkeyPatch

    async def ask(self, answer: Answer) -> DecideResult:
        """Ask an adapter that answers like this."""
        self._answers_with(answer)
        return await self.decide("test")

    def _answers_with(self, answer: Answer) -> None:
        async def build(argument: str, load_script: object) -> Adapter:
            return Adapter(answer)

        self.monkeypatch.setitem(KINDS, "test", ModelKind("test", build))

    async def ahead(self, answer: Answer) -> DecideResult | None:
        """Ask it in the activity before the question."""
        self._answers_with(answer)
        return await ahead(self.services, self.request.model_copy(update={"model": "test"}))

    async def decide(self, model: str, **changes: JsonValue) -> DecideResult:
        """Run the activity for a model."""
        activities = DecideActivities(self.services)
        request = self.request.model_copy(update={"model": model, **changes})
        result: DecideResult = await ActivityEnvironment().run(activities.decide, request)
        return result


async def a_question(services: Services, monkeypatch: pytest.MonkeyPatch) -> Asking:
    """Store the request and the rules of a run, and return the first question about it."""
    body = canonical_json(a_request())
    digest = await services.documents.put(SCOPE, DocumentKind.REQUEST, body)
    request = DecideRequest(
        scope=SCOPE,
        step=1,
        version=2,
        model="rules",
        request_digest=digest,
        policy_digest=await services.pin_rules(BUILTIN_RULES),
    )
    return Asking(services, request, monkeypatch)
