"""What a question to a model is made of, and how it is asked: of its own, or ahead.

A question whose answer costs nothing and that is sure to come next is asked in the activity before
it, which has just stored what the question is about. The workflow takes such an answer only where
it would have asked the very same, and asks by itself where there is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from activities import paid_calls
from activities.model_answers import answered, checked, invalid
from activities.services import Services
from triage.contracts.canonical import parse_json
from triage.contracts.model_faults import ModelFault
from triage.contracts.payloads import Asked, DecideOutcome, DecideRequest, DecideResult, Target
from triage.contracts.request import TriageRequest
from triage.contracts.trail import START
from triage.faults import Point, reach
from triage.models.base import (
    ModelAdapter,
    ModelRequest,
    Observation,
    PaidModel,
    ToolDescription,
)
from triage.models.factory import BrokenModel, MissingScript, NoKey
from triage.models.learned import LearnedModel
from triage.models.outcomes import failed
from triage.models.rules import RulesModel
from triage.policy.rules import Rules
from triage.policy.tools import ToolSpec
from triage.storage.documents import Document, DocumentKind
from triage.storage.evidence import StoredEvidence, followed, receipts_among

AHEAD_SECONDS: Final = 1.0
"""What asks nobody answers in milliseconds; one that takes longer is asked by itself."""


async def ahead(services: Services, request: DecideRequest) -> DecideResult | None:
    """Ask a model that asks nobody, in the activity before its question.

    Returns:
        Its decision; None without one. Whatever went wrong is then met again, and treated, where
        the question is asked by itself.
    """
    try:
        async with asyncio.timeout(AHEAD_SECONDS):
            result = await Asking(services).answer(request)
    except Exception:  # noqa: BLE001 - see above
        return None
    if result.outcome is not DecideOutcome.DECISION:
        return None
    return result.model_copy(update={"asked": asked(request)})


def asked(request: DecideRequest) -> Asked:
    """Return what a history would not hold else of a question that is no activity of its own."""
    return Asked(step=request.step, version=request.version, request_digest=request.request_digest)


def asks_where(model: ModelAdapter) -> bool:
    """Whether a model makes something of where an issue is kept."""
    return isinstance(model, PaidModel | LearnedModel)


def asks_nobody(model: ModelAdapter) -> bool:
    """Whether a model answers by itself, in milliseconds, so that asking it again costs nothing."""
    return isinstance(model, RulesModel | LearnedModel)


class Asking:
    """Asks the model of a run one question."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def answer(self, request: DecideRequest) -> DecideResult:
        """Return the adapter's proposal, or the named outcome that stands in for one."""
        issue = request.request or await self._stored(request)
        read = await self._evidence(request)
        if issue is None or read is None:
            return DecideResult(outcome=DecideOutcome.UNAVAILABLE)
        rules = await self._services.pinned_rules(request.policy_digest)
        try:
            model = await self._services.build_model(request.model)
            opinion = await self._services.second_opinion(rules)
        except MissingScript:
            return DecideResult(outcome=DecideOutcome.UNAVAILABLE)
        except NoKey:
            # It was there when the run began, or on the worker that began it.
            return failed(ModelFault.AUTH)
        except BrokenModel as error:
            return invalid(str(error))
        question = self._model_request(request, issue, rules, read)
        if opinion is not None or asks_where(model):
            question = await self._with_target(question, request.scope)
        reach(Point.DECIDE_BEFORE_MODEL)
        answer = await self._answer(model, question, request, rules)
        reach(Point.DECIDE_AFTER_MODEL)
        return answer if opinion is None else opinion.on(question, answer)

    async def _stored(self, request: DecideRequest) -> TriageRequest | None:
        """Return the run's request as it was stored; None if it is not there any more."""
        found = await self._services.documents.get(
            request.scope, DocumentKind.REQUEST, request.request_digest
        )
        if not isinstance(found, Document):
            return None
        return TriageRequest.model_validate_json(found.body)

    async def _answer(
        self, model: ModelAdapter, question: ModelRequest, request: DecideRequest, rules: Rules
    ) -> DecideResult:
        if not isinstance(model, PaidModel):
            return await answered(partial(model.decide, question), self._services.model_timeout)
        result = await paid_calls.call(self._services, model, question, request, rules)
        return checked(result).model_copy(update={"usage": result.usage})

    def _model_request(
        self,
        request: DecideRequest,
        issue: TriageRequest,
        rules: Rules,
        read: Sequence[StoredEvidence],
    ) -> ModelRequest:
        return ModelRequest(
            step=request.step,
            request=issue,
            observations=tuple(map(_observation, read)),
            tools=tuple(map(_description, rules.tools(self._services.tools))),
            routes=rules.routes,
            labels=rules.proposable_labels(),
            correction=request.correction,
        )

    async def _evidence(self, request: DecideRequest) -> Sequence[StoredEvidence] | None:
        """Return what the run has read so far; None if a part of it is gone without a trace."""
        receipts = request.receipts or ()
        if request.trail == START and not receipts:
            return ()
        rows = await self._services.evidence.load(request.scope, before_version=request.version)
        if request.trail is None:
            return rows
        read = followed(rows, request.trail)
        if read is None:
            return None
        written = [row for row in receipts_among(rows, receipts) if row not in read]
        return sorted([*read, *written], key=lambda row: row.version)

    async def _with_target(self, question: ModelRequest, scope: str) -> ModelRequest:
        """Add where the issue is kept, as far as that was noted and is still known."""
        found = await self._services.documents.newest(scope, DocumentKind.TARGET)
        if not isinstance(found, Document):
            return question
        target = Target.model_validate_json(found.body)
        where = {"repository": target.repository, "issue_id": target.issue}
        return question.model_copy(update=where)


def _description(spec: ToolSpec) -> ToolDescription:
    return ToolDescription(
        name=spec.name,
        purpose=spec.purpose,
        arguments={name: kind.value for name, kind in spec.arguments.items()},
        side_effect=spec.side_effect,
    )


def _observation(row: StoredEvidence) -> Observation:
    arguments = parse_json(row.arguments, "arguments") if row.arguments else {}
    return Observation(
        version=row.version,
        tool=row.tool,
        arguments=arguments if isinstance(arguments, dict) else {},
        evidence_id=row.evidence_id,
        locator=row.locator,
        content=None if row.content is None else parse_json(row.content, "evidence"),
    )
