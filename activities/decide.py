"""Asking the model adapter for one decision.

The activity loads what the adapter may see, asks once and returns plain data. It decides
nothing: the workflow parses the answer.
"""

from __future__ import annotations

from functools import partial

from temporalio import activity

from activities import paid_calls
from activities.model_answers import answered, checked, invalid
from activities.run_context import asks_where
from activities.services import Services
from triage.contracts.canonical import parse_json
from triage.contracts.model_faults import ModelFault
from triage.contracts.names import ACTIVITY_DECIDE
from triage.contracts.payloads import Asked, DecideOutcome, DecideRequest, DecideResult, Target
from triage.contracts.request import TriageRequest
from triage.faults import Point, reach
from triage.models.base import (
    ModelAdapter,
    ModelRequest,
    Observation,
    PaidModel,
    ToolDescription,
)
from triage.models.factory import BrokenModel, MissingScript, NoKey
from triage.models.outcomes import failed
from triage.policy.rules import Rules
from triage.policy.tools import ToolSpec
from triage.storage.documents import Document, DocumentKind
from triage.storage.evidence import StoredEvidence


class DecideActivities:
    """The activity that costs money."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=ACTIVITY_DECIDE)
    async def decide(self, request: DecideRequest) -> DecideResult:
        """Return the adapter's proposal, or the named outcome that stands in for one."""
        attempt = activity.info().attempt
        if request.attempts_left is not None and attempt > request.attempts_left:
            # The attempts before were lost with their workers, and each may have been a call.
            detail = "the budget of model_attempts is spent on calls that were lost"
            result = DecideResult(outcome=DecideOutcome.EXHAUSTED, detail=detail)
        else:
            result = await self._decided(request)
        return _with_what_was_asked(result, request)

    async def _decided(self, request: DecideRequest) -> DecideResult:
        issue = request.request or await self._stored(request)
        if issue is None:
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
        question = await self._model_request(request, issue, rules)
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

    async def _model_request(
        self, request: DecideRequest, issue: TriageRequest, rules: Rules
    ) -> ModelRequest:
        rows = await self._services.evidence.load(request.scope, before_version=request.version)
        return ModelRequest(
            step=request.step,
            request=issue,
            observations=tuple(_observation(row) for row in rows),
            tools=tuple(map(_description, rules.tools(self._services.tools))),
            routes=rules.routes,
            labels=rules.proposable_labels(),
            correction=request.correction,
        )

    async def _with_target(self, question: ModelRequest, scope: str) -> ModelRequest:
        """Add where the issue is kept, as far as that was noted and is still known."""
        found = await self._services.documents.newest(scope, DocumentKind.TARGET)
        if not isinstance(found, Document):
            return question
        target = Target.model_validate_json(found.body)
        where = {"repository": target.repository, "issue_id": target.issue}
        return question.model_copy(update=where)


def _with_what_was_asked(result: DecideResult, request: DecideRequest) -> DecideResult:
    """Add what a history would not hold else: later attempts, and the question of a local call."""
    info, more = activity.info(), dict[str, object]()
    if info.attempt > 1:
        more["attempts"] = info.attempt
    if info.is_local:
        more["asked"] = Asked(
            step=request.step, version=request.version, request_digest=request.request_digest
        )
    return result.model_copy(update=more) if more else result


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
