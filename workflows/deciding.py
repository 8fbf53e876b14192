"""Asking for a decision: what is charged, and what follows when none comes.

A model call that gives no decision has a named fault. Whether the loop asks again, has the answer
corrected, takes the next model or ends is decided here, counted and visible; each of them costs
the step, and none is a transition.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final, Literal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from triage.contracts.base import clamp
    from triage.contracts.canonical import abbreviated
    from triage.contracts.failures import FailureClass
    from triage.contracts.model_faults import MODEL_FAULTS, ModelFault, pause_before_retry
    from triage.contracts.options import (
        BudgetLimits,
        ContinuedFrom,
        RunOptions,
        abbreviated_name,
    )
    from triage.contracts.payloads import (
        Asked,
        DecideOutcome,
        DecideRequest,
        DecideResult,
        RunContext,
        Turn,
    )
    from triage.contracts.request import TriageRequest
    from triage.contracts.response import Status
    from triage.contracts.state import ModelFaultView
    from workflows import budget, calls
    from workflows.outcomes import Ending, failed, review, review_with_evidence
    from workflows.start import Limits
    from workflows.state import RunState

MAX_CORRECTION_CHARS: Final = 300
Then = Literal["retry", "correct", "fallback", "end"]


class Decider:
    """Asks the run's model, step by step.

    Attributes:
        correction: what was wrong with the answer before, for the next question; None if nothing.
        answer: what the activity before brought along, for the next question alone.
    """

    def __init__(
        self,
        state: RunState,
        context: RunContext,
        limits: Limits,
        *,
        request: TriageRequest,
        scope: str,
        interrupted: Callable[[], bool],
    ) -> None:
        self._state = state
        self._context = context
        self._limits = limits
        self._request = request
        self._scope = scope
        self._interrupted = interrupted
        self._models = (context.model, *limits.fallback_models)
        self.correction: str | None = None
        self.answer: DecideResult | None = None

    @property
    def model(self) -> str:
        """Who is asked next."""
        return self._models[min(self._state.fallbacks, len(self._models) - 1)]

    async def ask(self) -> DecideResult:
        """Ask once, and charge what it cost."""
        state = self._state
        question = self._question(state.steps, state.version)
        result = self._answer_to(question) or await calls.decide(
            question, self._context.model_timeout_ms, is_local=self._context.local_model
        )
        self.correction = None
        state.model_attempts += result.attempts or 1
        state.tokens += result.usage.tokens
        state.cost_micros += result.usage.cost_micros
        state.charge_time(result.took_ms)
        return result

    def may_be_left(self) -> bool:
        """Whether the next turn may begin in a fresh history.

        Not before a local activity: while one runs the SDK may take another workflow task, and a
        replay takes both for one, with what the server said of the second.
        """
        if not self._context.trailed:
            return self.answer is None
        return not (self._interrupted() or self._context.local_model)

    def next_question(self) -> DecideRequest | None:
        """Return what is asked after the read that begins now, if only an edit can come between.

        A model that asks nobody is asked in the read's own activity then.
        """
        state, limits = self._state, self._limits
        unbounded = limits.budget == BudgetLimits()
        if not (self._context.local_model and unbounded and state.steps < limits.max_steps):
            return None
        return self._question(state.steps + 1, state.version + 2)

    def _question(self, step: int, version: int) -> DecideRequest:
        state, limits = self._state, self._limits.budget
        return DecideRequest(
            scope=self._scope,
            step=step,
            version=version,
            model=abbreviated_name(self.model),
            request_digest=abbreviated(self._context.request_digest),
            policy_digest=abbreviated(self._context.provenance.policy),
            correction=self.correction,
            tokens_left=budget.left(limits.tokens, state.tokens),
            cost_micros_left=budget.left(limits.cost_micros, state.cost_micros),
            attempts_left=budget.left(limits.model_attempts, state.model_attempts),
            request=self._request if self._context.local_model else None,
            trail=state.trail,
            receipts=tuple(state.receipts) if state.trail is not None and state.receipts else None,
            timed=self._context.timed,
        )

    def _answer_to(self, question: DecideRequest) -> DecideResult | None:
        """Take the answer that came along, if this is the question that it answers."""
        answer, self.answer = self.answer, None
        due = Asked(
            step=question.step, version=question.version, request_digest=question.request_digest
        )
        is_due = answer is not None and answer.asked == due and question.correction is None
        return answer if is_due else None

    async def without(self, result: DecideResult) -> Ending | None:
        """Return how the run ends that got no decision; None if it asks again."""
        match result.outcome:
            case DecideOutcome.UNAVAILABLE:
                reason = "content that the decision needs is unavailable"
                return review_with_evidence(self._state, FailureClass.TOOL_ERROR, reason)
            case DecideOutcome.EXHAUSTED:
                reason = result.detail or "a budget that runs share is spent"
                return review_with_evidence(self._state, FailureClass.BUDGET_EXCEEDED, reason)
            case DecideOutcome.TIMEOUT:
                return await self._unanswered(result)
            case _:
                return self.unusable(result.detail, result.fault)

    async def _unanswered(self, result: DecideResult) -> Ending | None:
        """Ask again within the retries, then the next model, then hand over to a person."""
        fault = result.fault or ModelFault.TIMEOUT
        pause = pause_before_retry(fault, self._state.retries, result.retry_after_seconds)
        if MODEL_FAULTS[fault].passes and self._may_retry() and self._has_time_for(pause):
            self._note(fault, "retry", pause)
            self._state.retries += 1
            await self._wait(pause)
            return None
        if self._next_model(fault):
            return None
        if result.fault is None:
            reason = "the model timed out and the bounded retries are used"
            return review(FailureClass.MODEL_TIMEOUT, reason)
        self._note(fault, "end")
        return review(FailureClass.MODEL_TIMEOUT, _meaning(fault))

    def unusable(self, problem: str, fault: ModelFault | None) -> Ending | None:
        """Return how a run ends whose model answered, but with no decision; None if it corrects.

        Args:
            problem: what is wrong with the answer, in our own words.
            fault: the adapter's name for it; None where an answer arrived and was refused here.
        """
        named = fault or ModelFault.SCHEMA_VIOLATED
        corrected = self._state.corrections < self._limits.max_corrections
        if MODEL_FAULTS[named].is_answer and corrected:
            self._note(named, "correct")
            self._state.corrections += 1
            self.correction = clamp(problem or _meaning(named), MAX_CORRECTION_CHARS)
            return None
        if fault is None or not self._next_model(fault):
            self._note_unless_plain(fault)
            return failed(FailureClass.MODEL_INVALID_OUTPUT, problem or _meaning(named))
        return None

    def _may_retry(self) -> bool:
        return self._state.retries < self._limits.max_model_retries

    def _next_model(self, fault: ModelFault) -> bool:
        """Take the next model of the list, if there is one."""
        if self._state.fallbacks + 1 >= len(self._models):
            return False
        self._note(fault, "fallback")
        self._state.fallbacks += 1
        return True

    def _has_time_for(self, pause: int) -> bool:
        """Whether the run's time is not spent before the pause is over."""
        seconds = budget.left(self._limits.budget.seconds, self._state.seconds)
        return seconds is None or pause < seconds

    async def _wait(self, seconds: int) -> None:
        """Wait on a durable timer; an edit ends the pause, which is charged in full."""
        self._state.charge_time(1_000 * seconds)
        if seconds:
            with suppress(TimeoutError):
                await workflow.wait_condition(self._interrupted, timeout=timedelta(seconds=seconds))

    def _note_unless_plain(self, fault: ModelFault | None) -> None:
        if fault is not None:
            self._note(fault, "end")

    def _note(self, fault: ModelFault, then: Then, wait_seconds: int = 0) -> None:
        self._state.model_faults.append(
            ModelFaultView(
                step=self._state.steps,
                model=self.model,
                fault=fault.value,
                then=then,
                wait_seconds=wait_seconds,
            )
        )


def first_turn(
    state: RunState, options: RunOptions, continued: ContinuedFrom | None
) -> Turn | None:
    """Return when the first question is due, if nothing comes between it and the pinning."""
    is_first = state.status is Status.RECEIVED and options.budget == BudgetLimits()
    if not is_first or options.max_steps == 0:
        return None
    before = state.version if continued is None else continued.version
    return Turn(step=state.steps + 1, version=before + 2)


def _meaning(fault: ModelFault) -> str:
    info = MODEL_FAULTS[fault]
    return f"{info.meaning} ({fault.value})"
