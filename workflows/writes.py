"""Proposing a write and carrying it through: match an approval, wait for a person, dispatch.

No write begins here: what an approval permits is sent by the write activity, once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from triage.contracts.approval import RefusalCode, Review, Verdict
    from triage.contracts.canonical import digest_of
    from triage.contracts.failures import FailureClass
    from triage.contracts.options import RunOptions
    from triage.contracts.payloads import (
        Approval,
        Operation,
        Preview,
        PreviewRequest,
        RunContext,
        Target,
        VerifyRequest,
        WriteOutcome,
        WriteRequest,
        WriteResult,
    )
    from triage.contracts.response import Status
    from triage.contracts.search_attributes import (
        TRIAGE_STATUS,
        TRIAGE_TENANT,
        TRIAGE_WAITING_SINCE,
    )
    from triage.contracts.state import MutationRecord, OperationView, PendingView
    from workflows import calls
    from workflows.outcomes import (
        NOTHING,
        Ending,
        Proposal,
        review,
        review_with_evidence,
        tool_fault,
    )
    from workflows.review_desk import Decided, ReviewDesk
    from workflows.start import Limits
    from workflows.state import WITHDRAWN, RunState


@dataclass(frozen=True, slots=True)
class Intent:
    """A write that somebody wants: which labels, under which operation id, and who asks.

    `proposal` stays in the response if the write does not come about.
    """

    tool: str
    operation_id: str | None
    labels: tuple[str, ...]
    proposed_by: str
    proposal: Proposal = NOTHING


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment that a wait runs into, and the name that it is counted under."""

    name: str
    at: datetime


_NOTICES = ("reminder", "escalation")


def _count(name: str) -> None:
    """Count a reminder, an escalation or an expiry, and show the latest to whoever looks."""
    meter = workflow.metric_meter()
    meter.create_counter("triage_approval_deadlines").add(1, {"deadline": name})
    workflow.set_current_details(f"waits for a person; {name} at {workflow.now().isoformat()}")


class Writer:
    """Takes one run's writes from intent to receipt."""

    def __init__(  # noqa: PLR0913 - everything a write is bound to
        self,
        state: RunState,
        desk: ReviewDesk,
        *,
        scope: str,
        target: Target,
        options: RunOptions,
        limits: Limits,
        context: RunContext,
        interrupted: Callable[[], bool],
    ) -> None:
        self._state = state
        self._desk = desk
        self._scope = scope
        self.target = target
        self._options = options
        self._limits = limits
        self._context = context
        self._interrupted = interrupted
        self._waiting: Operation | None = None
        self.waited = timedelta()

    async def attempt(self, intent: Intent) -> Ending | None:
        """Carry `intent` through, from `tool_pending` to `tool_complete`.

        Returns:
            How the run ends, or None: the write is applied, or an edit interrupted the wait.
        """
        operation = self._operation(intent)
        decided = self._starting_approval(operation)
        if not operation.operation_id or (
            decided is None and not self._limits.approval_window_seconds
        ):
            return self._unapproved(intent, operation, "approval_required")
        problem = self._preflight(operation, intent.proposal)
        if problem is not None:
            return problem
        if decided is None:
            ending, decided = await self._wait(intent, operation)
            if decided is None:
                return ending
        return await self._send(intent, operation, decided)

    def has_applied(self, labels: tuple[str, ...]) -> bool:
        """Whether this run has put all of `labels` on the issue already (true for no labels)."""
        return frozenset().union(*self._state.applied.values()).issuperset(labels)

    def _operation(self, intent: Intent) -> Operation:
        version = self._state.version
        labels = tuple(sorted(set(intent.labels)))
        digest = digest_of([intent.tool, self.target.model_dump(mode="json"), list(labels)])
        return Operation(
            operation_id=intent.operation_id or "",
            version=version,
            tool=intent.tool,
            target=self.target,
            labels=labels,
            digest=digest,
            approval_digest=self._approval_digest(digest, version),
        )

    def _approval_digest(self, digest: str, version: int) -> str:
        rules = self._context.provenance.policy
        return digest_of([digest, version, self._context.content_digest, rules])

    def _starting_approval(self, operation: Operation) -> Decided | None:
        """Match an approval that the caller started the run with; a mismatch is a refusal."""
        version = self._options.approvals.get(operation.operation_id)
        if version is None or not operation.operation_id:
            return None
        approval = Review(
            operation_id=operation.operation_id,
            version=version,
            approver="start",
            verdict=Verdict.APPROVE,
        )
        code = RefusalCode.STALE_VERSION if version != operation.version else None
        if code is None and not self._desk.trust.local:
            code = RefusalCode.UNAUTHORISED
        if code is None:
            return Decided(approval, "start", workflow.now())
        self._desk.refuse(code, workflow.now(), approval)
        return None

    def _preflight(self, operation: Operation, proposal: Proposal) -> Ending | None:
        """Stop what could never be sent before a person is asked about it."""
        if not self._limits.labels.issuperset(operation.labels):
            self._note(operation, "blocked")
            reason = "the write names a label that this policy does not permit"
            return review(FailureClass.POLICY_BLOCK, reason, proposal)
        if self._state.sent.get(operation.operation_id, operation.digest) != operation.digest:
            return self._conflict(operation, "operation id reused with other content", proposal)
        return None

    async def _wait(
        self, intent: Intent, operation: Operation
    ) -> tuple[Ending | None, Decided | None]:
        shown = await calls.preview(PreviewRequest(target=self.target, labels=operation.labels))
        problem = self._unshowable(operation, shown, intent.proposal)
        if problem is not None:
            return problem, None
        decided = await self._decision(intent, operation, shown)
        if self._interrupted():
            self._note(operation, WITHDRAWN)
            return None, None
        if decided is not None and decided.review.verdict is Verdict.APPROVE:
            return None, decided
        state = "expired" if decided is None else "rejected"
        return self._unapproved(intent, operation, state), None

    def _unshowable(
        self, operation: Operation, shown: Preview, proposal: Proposal
    ) -> Ending | None:
        """Stop what the tracker could not carry out, or what was decided on other content."""
        if shown.gone:
            self._note(operation, "blocked")
            reason = "the tracker has no such issue any more"
            return tool_fault(self._state, FailureClass.TOOL_ERROR, reason, proposal)
        if shown.missing:
            self._note(operation, "blocked")
            reason = "the tracker does not have every label of this write"
            return review(FailureClass.POLICY_BLOCK, reason, proposal)
        if shown.content_digest != self._context.content_digest:
            return self._conflict(operation, "the issue changed after it was read", proposal)
        return None

    async def _decision(
        self, intent: Intent, operation: Operation, shown: Preview
    ) -> Decided | None:
        """Wait for the first review that counts, an edit, or the absolute deadline."""
        began = workflow.now()
        self._desk.open(self._pending_view(intent, operation, shown))
        workflow.upsert_search_attributes(
            [
                TRIAGE_STATUS.value_set(Status.TOOL_PENDING.value),
                TRIAGE_TENANT.value_set(self._options.context.tenant),
                TRIAGE_WAITING_SINCE.value_set(began),
            ]
        )
        self._waiting = operation
        deadlines = self._deadlines(began)
        while deadlines and not self._is_over():
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._is_over() or bool(self._desk.unproven),
                    timeout=max(deadlines[0].at - workflow.now(), timedelta()),
                )
            await self._prove_all()
            while deadlines and not self._is_over() and deadlines[0].at <= workflow.now():
                _count(deadlines.pop(0).name)
        self._desk.close()
        workflow.upsert_search_attributes([TRIAGE_WAITING_SINCE.value_unset()])
        self.waited += workflow.now() - began
        return self._desk.decided

    def _deadlines(self, began: datetime) -> list[Deadline]:
        """Return what the wait runs into, in order; the last is its end. Messages move none."""
        window = self._limits.approval_window_seconds
        seconds = [*zip(_NOTICES, self._limits.reminders_seconds, strict=True)]
        inside = sorted((after, name) for name, after in seconds if 0 < after < window)
        return [
            Deadline(name, began + timedelta(seconds=after))
            for after, name in [*inside, (window, "expired")]
        ]

    def _is_over(self) -> bool:
        """Whether the wait has an answer, or an edit has made the question void."""
        return self._desk.decided is not None or self._interrupted()

    async def _prove_all(self) -> None:
        """Verify the signed reviews that came by signal, in the order in which they came."""
        while self._desk.unproven and not self._is_over():
            claimed = self._desk.unproven.pop(0)
            code = await self.prove(claimed) or self._desk.receive(
                claimed, "signal", workflow.now()
            )
            if code is not None:
                self._desk.refuse(code, workflow.now(), claimed)

    async def prove(self, claimed: Review) -> RefusalCode | None:
        """Verify a review's signature; return why it does not count, or None."""
        operation = self._waiting
        if operation is None or claimed.token is None:
            return RefusalCode.NOT_PENDING
        window = timedelta(seconds=self._limits.approval_window_seconds)
        result = await calls.verify_approval(
            VerifyRequest(
                scope=self._scope,
                tenant=self._options.context.tenant,
                operation_id=operation.operation_id,
                version=operation.version,
                operation_digest=operation.digest,
                approval_digest=operation.approval_digest,
                verdict=claimed.verdict,
                approver=claimed.approver,
                token=claimed.token,
                use_by=(workflow.now() + window).isoformat(),
            )
        )
        return None if result.accepted else RefusalCode(result.code)

    def _pending_view(self, intent: Intent, operation: Operation, shown: Preview) -> PendingView:
        now = workflow.now()
        window = timedelta(seconds=self._limits.approval_window_seconds)
        return PendingView(
            operation_id=operation.operation_id,
            version=operation.version,
            tool=operation.tool,
            target=self.target.model_dump(mode="json"),
            arguments={"issue_id": self.target.issue, "labels": list(operation.labels)},
            digest=operation.approval_digest,
            labels_before=shown.labels_before,
            labels_after=shown.labels_after,
            proposed_by=intent.proposed_by,
            proposed_at=now.isoformat(),
            expires_at=(now + window).isoformat(),
        )

    async def _send(self, intent: Intent, operation: Operation, decided: Decided) -> Ending | None:
        request = WriteRequest(
            scope=self._scope,
            tenant=self._options.context.tenant,
            operation=operation,
            approval=Approval(
                approver=decided.review.approver,
                source=decided.source,
                decided_at=decided.at.isoformat(),
                expires_at=self._send_by(decided),
            ),
            content_digest=self._context.content_digest,
            policy_digest=self._context.provenance.policy,
            timeout_ms=self._limits.tools[operation.tool].timeout_ms,
        )
        self._state.sent[operation.operation_id] = operation.digest
        try:
            result = await calls.write(operation.tool, request)
        except ActivityError:
            result = WriteResult(outcome=WriteOutcome.UNKNOWN, detail="the outcome is not known")
        return self._settled(intent, operation, result)

    def _send_by(self, decided: Decided) -> str | None:
        """A waited-for approval must be used within one more window; a starting one has none."""
        window = timedelta(seconds=self._limits.approval_window_seconds)
        return (decided.at + window).isoformat() if window else None

    def _settled(self, intent: Intent, operation: Operation, result: WriteResult) -> Ending | None:
        match result.outcome:
            case WriteOutcome.APPLIED:
                self._applied(intent, operation, result)
                return None
            case WriteOutcome.CONFLICT:
                return self._conflict(operation, result.detail, intent.proposal)
            case WriteOutcome.REFUSED:
                self._note(operation, "refused")
                return review(FailureClass.POLICY_BLOCK, result.detail, intent.proposal)
            case WriteOutcome.FAILED:
                self._note(operation, "failed")
                fault = FailureClass.TOOL_ERROR
                return tool_fault(self._state, fault, result.detail, intent.proposal)
            case WriteOutcome.UNKNOWN:
                self._note(operation, "unknown")
                fault = FailureClass.TOOL_TIMEOUT
                return review_with_evidence(self._state, fault, result.detail, intent.proposal)

    def _applied(self, intent: Intent, operation: Operation, result: WriteResult) -> None:
        if result.evidence is not None:
            self._state.evidence.append(result.evidence)
        repeated = operation.operation_id in self._state.applied
        self._state.applied[operation.operation_id] = frozenset(operation.labels)
        self._note(operation, "replayed" if repeated else "applied")
        self._record(intent, "idempotent_replay" if repeated else "approved")
        self._state.move(Status.TOOL_COMPLETE)

    def _unapproved(self, intent: Intent, operation: Operation, state: str) -> Ending:
        self._note(operation, state)
        self._record(intent, "approval_required")
        reasons = {
            "expired": "the time to approve the write ran out",
            "rejected": "a reviewer rejected the write",
        }
        reason = reasons.get(state, "the write needs an approval of this operation and version")
        return review(FailureClass.APPROVAL_REQUIRED, reason, intent.proposal)

    def _conflict(self, operation: Operation, reason: str, proposal: Proposal) -> Ending:
        self._note(operation, "conflict")
        return review(FailureClass.STATE_CONFLICT, reason, proposal)

    def _note(self, operation: Operation, state: str) -> None:
        self._state.operations.append(
            OperationView(
                operation_id=operation.operation_id or None,
                version=operation.version,
                digest=operation.digest,
                state=state,
            )
        )

    def _record(self, intent: Intent, reason: str) -> None:
        self._state.mutations.append(
            MutationRecord(
                operation_id=intent.operation_id,
                tool=intent.tool,
                executed=reason == "approved",
                authorized=reason != "approval_required",
                reason=reason,
            )
        )
