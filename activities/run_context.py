"""Pinning a run: its request is stored, and rules, model and tools are fixed for good.

A local activity: it may run twice, and storing the same things again changes nothing.
"""

from __future__ import annotations

from temporalio import activity

from activities.far_end import look
from activities.inheritance import NothingToContinueError, inherit
from activities.security import marked
from activities.services import Services
from triage.contracts.canonical import canonical_json
from triage.contracts.names import ACTIVITY_PIN_RUN_CONTEXT
from triage.contracts.payloads import PinRequest, Provenance, RunContext
from triage.faults import Point, reach
from triage.models.base import ModelAdapter
from triage.models.factory import UnknownModel, build_model
from triage.policy.rules import Rules
from triage.storage.documents import DocumentKind
from triage.trackers.abilities import HasFiles
from triage.trackers.base import TrackedIssue, TrackerRefused


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
            model = await build_model(name, load_script=services.load_script)
            rules = await services.rules.in_force()
            issue = await look(self._issue(request, rules))
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
        context = RunContext(
            policy=rules.snapshot(
                services.tools,
                request.context.repository,
                remote=isinstance(services.trackers[tracker], HasFiles),
            ),
            provenance=await self._provenance(model, rules),
            request_digest=stored,
            content_digest=issue.content_digest,
            model=name,
            model_timeout_ms=int(services.model_timeout.total_seconds() * 1_000),
            tracker=tracker,
            author=issue.author or request.context.author or "",
            local_trust=services.local_trust,
        )
        more: dict[str, object] = {"inherited": inherited} if inherited else {}
        claimed = request.context.author or ""
        if claimed not in {"", context.author}:
            more["claimed_author"] = claimed
        return marked(context.model_copy(update=more) if more else context, request, rules)

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

    async def _provenance(self, model: ModelAdapter, rules: Rules) -> Provenance:
        return Provenance(
            orchestrator=self._services.orchestrator,
            policy=await self._services.pin_rules(rules),
            prompt="",
            prices="",
            tools=self._services.tools.digest(),
            model=f"{model.name}@{model.revision}",
        )
