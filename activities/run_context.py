"""Pinning a run: its request is stored, and rules, model and tools are fixed for good.

A local activity: it may run twice, and storing the same things again changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from temporalio import activity

from activities.asking import ahead, asks_nobody, asks_where
from activities.far_end import look
from activities.inheritance import NothingToContinueError, inherit
from activities.security import marked
from activities.services import Services
from triage.contracts.canonical import abbreviated, canonical_json
from triage.contracts.names import ACTIVITY_PIN_RUN_CONTEXT
from triage.contracts.options import BudgetLimits, abbreviated_name
from triage.contracts.payloads import (
    DecideRequest,
    EvidenceRef,
    PinRequest,
    Provenance,
    RunContext,
    Target,
)
from triage.contracts.trail import START, along
from triage.faults import Point, reach
from triage.models.base import ModelAdapter, PaidModel
from triage.models.factory import UnknownModel
from triage.models.llm_prompt import prompt_body
from triage.models.second_opinion import SecondOpinion
from triage.policy.rules import Rules
from triage.storage.documents import SHARED, DocumentKind
from triage.storage.spending import Account
from triage.trackers.abilities import HasFiles, inventory_of
from triage.trackers.base import TrackedIssue, TrackerRefused

_DEFAULTS: Final = {name: field.get_default() for name, field in RunContext.model_fields.items()}


class RunContextActivities:
    """The activity that begins every run."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=ACTIVITY_PIN_RUN_CONTEXT)
    async def pin(self, request: PinRequest) -> RunContext:
        """Store the request and return the snapshot that the run is held to.

        A model or a tracker that does not exist is a refusal in the result, not an error.

        Raises:
            ApplicationError: of type ``tool_error`` or ``tool_timeout``; see `look`.
        """
        services = self._services
        name = request.model or services.default_model
        tracker = request.context.tracker or services.default_tracker
        try:
            rules = await services.rules.in_force()
            models = [await services.build_model(each) for each in (name, *rules.fallback_models)]
            opinion = await services.second_opinion(rules)
            issue, ids = await look(self._seen(request, rules))
            reach(Point.PIN_AFTER_ADMIT)
            inherited = await inherit(services, request)
        except (UnknownModel, TrackerRefused, NothingToContinueError) as error:
            return RunContext(refused=str(error))
        stored = await services.documents.put(
            request.scope,
            DocumentKind.REQUEST,
            canonical_json(request.request.model_dump(mode="json")),
            expires_at=services.content_expiry(rules),
        )
        reach(Point.PIN_AFTER_STORE)
        remote = isinstance(services.trackers[tracker], HasFiles)
        context = RunContext(
            policy=rules.snapshot(services.tools, request.context.repository, remote=remote),
            provenance=await self._provenance(models, opinion, rules),
            request_digest=stored,
            content_digest=issue.content_digest,
            model=name,
            model_timeout_ms=self._timeout_ms(models),
            tracker=tracker,
            author=issue.author or request.context.author or "",
            local_trust=services.local_trust,
            local_model=all(map(asks_nobody, models)),
            trailed=True,
        )
        # What is not set is not written, and reads as its default.
        context.model_fields_set.difference_update(_usual(context))
        if opinion is not None or any(map(asks_where, models)):
            await self._note_for_models(request, context, rules)
        context = marked(_with_what_is_unusual(context, request, inherited, ids), request, rules)
        return await self._with_first_answer(context, request, rules)

    async def _with_first_answer(
        self, context: RunContext, request: PinRequest, rules: Rules
    ) -> RunContext:
        """Ask what is sure to come next, if that asks nobody: no budget can forbid it then."""
        turn = request.turn
        is_sure = rules.budget == BudgetLimits() and rules.max_steps > 0
        if turn is None or not (is_sure and context.local_model):
            return context
        question = DecideRequest(
            scope=request.scope,
            step=turn.step,
            version=turn.version,
            model=abbreviated_name(context.model),
            request_digest=abbreviated(context.request_digest),
            policy_digest=context.provenance.policy,
            request=request.request,
            trail=along(START, ((item.id, item.digest) for item in context.inherited)),
        )
        answer = await ahead(self._services, question)
        return context if answer is None else context.model_copy(update={"answer": answer})

    async def _seen(self, request: PinRequest, rules: Rules) -> tuple[TrackedIssue, dict[str, str]]:
        """Look at the issue, and at what its write would need; one deadline holds for both."""
        return await self._issue(request, rules), await self._label_ids(request, rules)

    async def _issue(self, request: PinRequest, rules: Rules) -> TrackedIssue:
        """Find the run's issue; a tracker that keeps issues itself registers an unknown one."""
        context = request.context
        name = context.tracker or self._services.default_tracker
        tracker = self._services.trackers.get(name)
        if tracker is None:
            raise TrackerRefused("unknown_tracker", "the tracker is not configured on this worker")
        return await tracker.admit_issue(
            context.repository,
            context.issue or request.request.request_id,
            title=request.request.title,
            body=request.request.body,
            author=context.author or "",
            labels=tuple(rules.labels),
        )

    async def _label_ids(self, request: PinRequest, rules: Rules) -> dict[str, str]:
        """Return which labels the rules' are now, for a write that was approved beforehand."""
        if not request.wants_label_ids:
            return {}
        context = request.context
        tracker = self._services.trackers[context.tracker or self._services.default_tracker]
        inventory = await inventory_of(tracker, context.repository)
        return inventory.ids(tuple(rules.labels)) if inventory.has_ids else {}

    async def _provenance(
        self, models: Sequence[ModelAdapter], opinion: SecondOpinion | None, rules: Rules
    ) -> Provenance:
        named = ", then ".join(f"{model.name}@{model.revision}" for model in models)
        paid = next((model for model in models if isinstance(model, PaidModel)), None)
        return Provenance(
            orchestrator=self._services.orchestrator,
            policy=await self._services.pin_rules(rules),
            prompt=await self._pin_prompt() if paid else "",
            prices=paid.prices if paid else "",
            tools=self._services.tools.digest(),
            model=named if opinion is None else f"{named}, beside {opinion.name}",
        )

    async def _pin_prompt(self) -> str:
        """Store the prompt by its digest, and return it; storing it again changes nothing."""
        return await self._services.documents.put(SHARED, DocumentKind.PROMPT, prompt_body())

    async def _charge_to(self, request: PinRequest, context: RunContext) -> None:
        """Note whom the run's calls are charged to."""
        where = request.context
        account = Account.of(where.tenant, context.tracker, where.repository, context.author)
        await self._services.spending.open_account(request.scope, account)

    async def _note_for_models(
        self, request: PinRequest, context: RunContext, rules: Rules
    ) -> None:
        """Note which issue the run is about, and whom its calls are charged to, if they cost."""
        if context.provenance.prompt:
            await self._charge_to(request, context)
        where = request.context
        target = Target(
            tracker=context.tracker,
            repository=where.repository,
            issue=where.issue or request.request.request_id,
        )
        await self._services.documents.put(
            request.scope,
            DocumentKind.TARGET,
            canonical_json(target.model_dump(mode="json")),
            expires_at=self._services.content_expiry(rules),
        )

    def _timeout_ms(self, models: Sequence[ModelAdapter]) -> int:
        """Return what one call may take, of whichever model is asked."""
        paid = (model.timeout for model in models if isinstance(model, PaidModel))
        return int(max((self._services.model_timeout, *paid)).total_seconds() * 1_000)


def _usual(context: RunContext) -> set[str]:
    """Return the fields that say what is so without them: no history holds them for nothing."""
    return {name for name, default in _DEFAULTS.items() if getattr(context, name) == default}


def _with_what_is_unusual(
    context: RunContext,
    request: PinRequest,
    inherited: Sequence[EvidenceRef],
    label_ids: Mapping[str, str],
) -> RunContext:
    """Add what most runs do not have, so that no history holds it for nothing."""
    more: dict[str, object] = {"inherited": tuple(inherited)} if inherited else {}
    claimed = request.context.author or ""
    if claimed not in {"", context.author}:
        more["claimed_author"] = claimed
    if label_ids:
        more["label_ids"] = dict(label_ids)
    return context.model_copy(update=more) if more else context
