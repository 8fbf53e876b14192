"""The bounded decision loop of one triage run.

A model proposes one typed decision per step; this code decides what comes of it. Rules are read
only from the snapshot that was pinned when the run began, so a changed file never changes a
replay. The order of the checks is part of the contract: nothing happens before its check.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from triage.contracts.approval import RefusalCode, Review
    from triage.contracts.base import ContractError
    from triage.contracts.canonical import short_hash
    from triage.contracts.decision import (
        CallTool,
        Decision,
        FinalAnswer,
        RequestReview,
        ToolCall,
        parse_decision,
    )
    from triage.contracts.failures import FailureClass
    from triage.contracts.intent import Intent, Proposal
    from triage.contracts.names import ACTIVITY_APPLY_LABELS
    from triage.contracts.options import ContinuedFrom
    from triage.contracts.payloads import (
        DecideOutcome,
        DecideResult,
        PinRequest,
        ReadRequest,
        RunContext,
        Target,
        ToolSnapshot,
    )
    from triage.contracts.request import TriageRequest, changed_fields
    from triage.contracts.response import Status
    from triage.contracts.state import DecisionView
    from triage.policy.approval_gate import Trust
    from triage.policy.grounding import is_cited
    from triage.policy.tools import check_arguments
    from workflows import budget, calls, entailment
    from workflows.carried import Carried, HistoryFull, Wait
    from workflows.deciding import Decider, first_turn
    from workflows.outcomes import (
        Ending,
        failed,
        raised,
        read_fault,
        review,
        review_with_evidence,
    )
    from workflows.review_desk import ReviewDesk
    from workflows.start import Limits, Start, settle
    from workflows.state import RunState
    from workflows.waiting import history_is_full, overtaken
    from workflows.writes import Writer


class TriageLoop:
    """Runs one request to its ending."""

    def __init__(self, start: Start, state: RunState, desk: ReviewDesk) -> None:
        info = workflow.info()
        self.request = start.request
        self.edit: TriageRequest | None = None
        self._options = start.options
        self._state = state
        self._desk = desk
        context = start.options.context
        self._scope = short_hash(context.tenant, info.workflow_id, info.first_execution_run_id)
        self._began = workflow.now()
        self._waited = timedelta()
        self._wait: Wait | None = None
        self._is_pinned = False
        self._edited: tuple[str, ...] | None = None
        if start.carried is not None:
            self._restore(start.carried)

    def _restore(self, carried: Carried) -> None:
        """Go on where an earlier execution of this run stopped, before any message is handled."""
        self._hold_to(carried.context)
        self._edited = carried.edited
        self.edit = None if carried.edited is None else self.request
        self._desk.unproven.extend(carried.unproven)
        self._began = datetime.fromisoformat(carried.began)
        self._waited = timedelta(seconds=carried.waited_seconds)
        self._decider.correction = carried.correction
        self._wait = carried.wait
        if carried.wait is not None:
            self._writer.room.enter(carried.wait)

    def handed_on(self) -> list[Any]:
        """Return the arguments of the next execution of this run: everything that it needs."""
        carried = Carried(
            state=self._state,
            context=self._context.model_copy(update={"inherited": ()}),
            began=self._began.isoformat(),
            waited_seconds=(self._waited + self._writer.room.waited).total_seconds(),
            wait=self._writer.room.carried(),
            edited=self._changed_by(self.edit) if self.edit is not None else None,
            unproven=tuple(self._desk.unproven),
        )
        if self._decider.correction is not None:
            carried = carried.model_copy(update={"correction": self._decider.correction})
        return [self.edit or self.request, self._options, carried]

    def _changed_by(self, edit: TriageRequest) -> tuple[str, ...]:
        """Return what an edit changes; one that was carried here had been applied already."""
        before = self._edited or ()
        return tuple(dict.fromkeys((*before, *changed_fields(self.request, edit))))

    async def run(self) -> Ending:
        """Loop until something ends the run, and no edit has overtaken it; then say how.

        Raises:
            HistoryFull: it goes on in another execution.
        """
        ending = await self._begin()
        while ending is None or (self._is_pinned and await overtaken(self._interrupted)):
            # A write may wait for days; all that led to it has returned by then, and holds nothing.
            step = await self._turn()
            ending = await self._carry_out(step) if isinstance(step, Intent) else step
        return raised(ending) if self._is_pinned and self._context.security else ending

    async def _begin(self) -> Ending | None:
        if not self._is_pinned:
            return await self._pin(self._options.continued_from)
        if (wait := self._wait) is None:
            return None
        ending = await self._writer.go_on(wait.intent, wait.operation)
        return self._after_write(wait.intent, ending)

    async def _pin(self, continued: ContinuedFrom | None = None) -> Ending | None:
        """Store the request and pin the rules, the model and the tools."""
        try:
            context = await calls.pin(self._pin_request(continued))
        except ApplicationError as error:
            # What the tracker could not answer is an outcome; anything else is the platform's.
            if error.type not in {FailureClass.TOOL_ERROR, FailureClass.TOOL_TIMEOUT}:
                raise
            return failed(calls.failure_of(error), "the tracker could not show the issue")
        if context.refused is not None or context.policy is None:
            reason = context.refused or "the rules could not be pinned"
            return failed(FailureClass.INVALID_INPUT, reason)
        self._state.charge_time(context.took_ms)
        lasting = context.without_answer()
        self._hold_to(lasting.after(self._context) if self._is_pinned else lasting)
        self._decider.answer = context.answer
        if continued is not None:
            self._state.continue_at(continued.version, context.inherited)
        if self._state.status is Status.RECEIVED:
            self._state.move(Status.VALIDATED)
        return None

    def _pin_request(self, continued: ContinuedFrom | None) -> PinRequest:
        return PinRequest(
            scope=self._scope,
            request=self.request,
            context=self._options.context,
            model=self._options.model,
            continued_from=continued,
            wants_label_ids=bool(self._options.approvals),
            turn=None if self.edit else first_turn(self._state, self._options, continued),
            timed=self._options.budget.seconds is not None,
        )

    def _hold_to(self, context: RunContext) -> None:
        """Settle what this run is held to, by what was pinned."""
        if context.policy is None:
            raise ValueError("a run is held to rules")
        self._is_pinned = True
        self._context: RunContext = context
        self._limits: Limits = settle(self._options, context.policy)
        self._state.provenance = context.provenance
        self._state.keep_trail(is_kept=context.trailed)
        self._desk.trust = Trust(
            local=context.local_trust,
            author=context.author or None,
            approvers=context.policy.approvers,
            claimed_author=context.claimed_author or None,
        )
        self._writer = self._new_writer()
        self._decider = Decider(
            self._state,
            context,
            self._limits,
            request=self.request,
            scope=self._scope,
            interrupted=self._interrupted,
        )

    def _new_writer(self) -> Writer:
        context = self._options.context
        return Writer(
            self._state,
            self._desk,
            scope=self._scope,
            target=Target(
                tracker=self._context.tracker,
                repository=context.repository,
                issue=context.issue or self.request.request_id,
            ),
            options=self._options,
            limits=self._limits,
            context=self._context,
            interrupted=self._interrupted,
        )

    async def prove(self, review: Review) -> RefusalCode | None:
        """Verify a signed review and take it; return why it does not count, or None."""
        if not self._is_pinned:
            return RefusalCode.NOT_PENDING
        return await self._writer.room.prove(review, "update")

    async def _turn(self) -> Ending | Intent | None:
        """Spend one step: ask for a decision and act on it; a write is returned, not begun."""
        state = self._state
        if self._decider.may_be_left() and history_is_full():
            raise HistoryFull
        if self.edit is not None:
            return await self._reopen(self.edit)
        if state.steps >= self._limits.max_steps:
            reason = f"stopped after max_steps={self._limits.max_steps}"
            return failed(FailureClass.MAX_STEPS_EXCEEDED, reason)
        if state.status is not Status.DECIDING:
            state.move(Status.DECIDING)
        if (spent_budget := self._spent_budget()) is not None:
            reason = f"the budget of {spent_budget} is spent"
            return review_with_evidence(state, FailureClass.BUDGET_EXCEEDED, reason)
        state.steps += 1
        result = await self._decider.ask()
        return None if self._interrupted() else await self._follow(result)

    def _interrupted(self) -> bool:
        """Whether an edit has arrived that the loop has not yet taken up."""
        return self.edit is not None

    async def _reopen(self, request: TriageRequest) -> Ending | None:
        """Start over with the edited request; steps, retries and spend carry over."""
        self.edit = None
        self._state.reopen(self._changed_by(request))
        self.request, self._edited = request, None
        self._waited += self._writer.room.waited
        return await self._pin()

    def _spent_budget(self) -> str | None:
        state = self._state
        if self._context.timed:
            state.seconds = state.took_ms // 1_000
        else:
            active = workflow.now() - self._began - self._waited - self._writer.room.waited
            state.seconds = int(active.total_seconds())
        return budget.exhausted(budget.spent(state), self._limits.budget)

    async def _follow(self, result: DecideResult) -> Ending | Intent | None:
        if result.outcome is not DecideOutcome.DECISION:
            return await self._decider.without(result)
        try:
            decision = parse_decision(
                result.decision, routes=self._limits.routes, labels=self._limits.labels
            )
        except ContractError as error:
            return self._decider.unusable(str(error), None)
        self._note(decision)
        match decision:
            case RequestReview():
                return self._review(decision)
            case FinalAnswer():
                return self._final(decision)
            case CallTool():
                return await self._call(decision.tool)

    def _note(self, decision: Decision) -> None:
        call = decision.tool if isinstance(decision, CallTool) else None
        self._state.decisions.append(
            DecisionView(
                step=self._state.steps,
                kind=decision.kind,
                call_id=call.call_id if call else None,
                tool=call.name if call else None,
            )
        )

    def _review(self, decision: RequestReview) -> Ending:
        if not is_cited(decision.evidence_ids, self._state.known_evidence()):
            reason = "the review cites evidence that no tool returned"
            return failed(FailureClass.MODEL_INVALID_OUTPUT, reason)
        proposal = Proposal(route=decision.route, evidence_ids=decision.evidence_ids)
        return review(None, decision.reason, proposal)

    def _final(self, decision: FinalAnswer) -> Ending | Intent:
        known = self._state.known_evidence()
        if not decision.evidence_ids or not is_cited(decision.evidence_ids, known):
            reason = "the final answer is not grounded in returned evidence"
            return failed(FailureClass.FINAL_OUTPUT_INVALID, reason)
        proposal = Proposal(
            route=decision.route,
            labels=decision.labels,
            owner=decision.owner,
            evidence_ids=decision.evidence_ids,
        )
        problem = entailment.problem_with(decision, self._state, self._limits, self.request)
        if problem is not None:
            return review(FailureClass.FINAL_OUTPUT_INVALID, problem, proposal)
        if self._must_propose(decision):
            return self._propose(proposal, decision.reason)
        return Ending(Status.COMPLETED, decision.reason, proposal=proposal)

    def _must_propose(self, decision: FinalAnswer) -> bool:
        return (
            self._limits.propose_on_final
            and not self._context.security
            and ACTIVITY_APPLY_LABELS in self._limits.permitted_effects
            and not self._writer.has_applied(decision.labels)
        )

    def _propose(self, proposal: Proposal, reason: str) -> Intent:
        """Let the orchestrator ask a person for the final's labels; this costs no step."""
        self._state.tool_sequence.append(ACTIVITY_APPLY_LABELS)
        self._state.move(Status.TOOL_PENDING)
        return Intent(
            tool=ACTIVITY_APPLY_LABELS,
            operation_id=f"op-{self._state.version}",
            issue=self._writer.target.issue,
            labels=proposal.labels,
            proposed_by="orchestrator",
            proposal=proposal,
            completes=reason,
        )

    async def _carry_out(self, intent: Intent) -> Ending | None:
        return self._after_write(intent, await self._writer.attempt(intent))

    def _after_write(self, intent: Intent, ending: Ending | None) -> Ending | None:
        """Complete the run if nothing but this write was left to do; an edit opens it again."""
        if ending is not None or intent.completes is None or self._interrupted():
            return ending
        self._state.move(Status.DECIDING)
        return Ending(Status.COMPLETED, intent.completes, proposal=intent.proposal)

    async def _call(self, call: ToolCall) -> Ending | Intent | None:
        self._state.tool_sequence.append(call.name)
        tool = self._limits.tools.get(call.name)
        if tool is None:
            return failed(FailureClass.UNKNOWN_TOOL, "the tool is not registered")
        try:
            check_arguments(tool, call.arguments)
        except ContractError as error:
            return failed(FailureClass.INVALID_TOOL_ARGUMENTS, str(error))
        self._state.move(Status.TOOL_PENDING)
        return self._write(tool, call) if tool.side_effect else await self._read(tool, call)

    def _write(self, tool: ToolSnapshot, call: ToolCall) -> Ending | Intent:
        if tool.name not in self._limits.permitted_effects:
            return review(FailureClass.POLICY_BLOCK, "this run may not have side effects")
        labels = call.arguments["labels"]
        return Intent(
            tool=tool.name,
            operation_id=call.operation_id,
            issue=str(call.arguments["issue_id"]),
            labels=tuple(str(label) for label in labels) if isinstance(labels, list) else (),
            proposed_by="model",
        )

    async def _read(self, tool: ToolSnapshot, call: ToolCall) -> Ending | None:
        request = ReadRequest(
            scope=self._scope,
            version=self._state.version,
            arguments=call.arguments,
            policy_digest=self._context.provenance.policy,
            timeout_ms=tool.timeout_ms,
            target=self._writer.target if tool.target else None,
            ask=self._decider.next_question() if tool.local else None,
            after=self._state.trail,
            timed=self._context.timed,
        )
        left = budget.left(self._limits.budget.tool_attempts, self._state.tool_attempts)
        attempts = tool.max_attempts if left is None else max(1, min(left, tool.max_attempts))
        try:
            found = await calls.read(tool, request, attempts)
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            # How often it was tried is not said, so all that was allowed is charged.
            self._state.tool_attempts += attempts
            return read_fault(self._state, calls.failure_of(error), tool.name)
        evidence, self._decider.answer = found.read_by(tool.name), found.answer
        self._state.tool_attempts += evidence.attempts
        self._state.charge_time(found.took_ms)
        entailment.keep(self._state, self._limits, evidence, call)
        self._state.move(Status.TOOL_COMPLETE)
        return None
