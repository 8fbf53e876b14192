"""Proposing a write and carrying it through: match an approval, wait for a person, dispatch.

No write begins here: what an approval permits is sent by the write activity, once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from triage.contracts.approval import RefusalCode, Review, Verdict
    from triage.contracts.covering import approval_digest, operation_digest
    from triage.contracts.failures import LABEL_REMOVED, FailureClass
    from triage.contracts.intent import Intent, Proposal
    from triage.contracts.options import RunOptions, SignedApproval
    from triage.contracts.payloads import (
        Approval,
        Operation,
        Preview,
        PreviewRequest,
        RunContext,
        Target,
        WriteOutcome,
        WriteRequest,
        WriteResult,
    )
    from triage.contracts.response import Status
    from triage.contracts.state import MutationRecord, OperationView
    from triage.policy.approval_gate import may_decide
    from workflows import calls
    from workflows.outcomes import Ending, review, review_with_evidence, tool_fault
    from workflows.review_desk import Decided, ReviewDesk
    from workflows.start import Limits
    from workflows.state import WITHDRAWN, RunState
    from workflows.waiting import WaitingRoom


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
        policy = context.policy
        self.room = WaitingRoom(
            desk,
            scope=scope,
            tenant=options.context.tenant,
            limits=limits,
            approvals_required=policy.approvals_required if policy else 1,
            interrupted=interrupted,
        )

    async def attempt(self, intent: Intent) -> Ending | None:
        """Carry `intent` through, from `tool_pending` to `tool_complete`.

        Returns:
            How the run ends, or None: the write is applied, or an edit interrupted the wait.
        """
        operation = self._operation(intent)
        decided = await self._starting_approval(operation)
        if not operation.operation_id or (
            decided is None and not self._limits.approval_window_seconds
        ):
            return self._unapproved(intent, operation, "approval_required")
        problem = self._preflight(operation, intent)
        if problem is not None:
            return problem
        if decided is None:
            asked = await self._ask(intent, operation)
            if isinstance(asked, Ending):
                return asked
            operation = asked  # While it waits, it is held as it was asked, and no second time.
            return await self.go_on(intent, operation)
        if self._interrupted():
            self._note(operation, WITHDRAWN)
            return None
        return await self._send(intent, self._as_pinned(operation), decided)

    def _as_pinned(self, operation: Operation) -> Operation:
        """Hold what was approved before the run began to the labels that there were then."""
        known = self._context.label_ids or {}
        ids = {label: known[label] for label in operation.labels if label in known}
        return operation.model_copy(update={"label_ids": ids}) if ids else operation

    async def go_on(self, intent: Intent, operation: Operation) -> Ending | None:
        """Wait for the answer to what was asked, and act on it; returns what `attempt` does."""
        decided = await self.room.decision()
        if self._interrupted():
            self._note(operation, WITHDRAWN)
            return None
        if decided is not None and decided.review.verdict is Verdict.APPROVE:
            return await self._send(intent, operation, decided)
        state = "expired" if decided is None else "rejected"
        return self._unapproved(intent, operation, state)

    def has_applied(self, labels: tuple[str, ...]) -> bool:
        """Whether this run has put all of `labels` on the issue already (true for no labels)."""
        return frozenset().union(*self._state.applied.values()).issuperset(labels)

    def _operation(self, intent: Intent) -> Operation:
        version = self._state.version
        labels = tuple(sorted(set(intent.labels)))
        digest = operation_digest(intent.tool, self.target.model_dump(mode="json"), labels)
        content, rules = self._context.content_digest, self._context.provenance.policy
        return Operation(
            operation_id=intent.operation_id or "",
            version=version,
            tool=intent.tool,
            target=self.target,
            labels=labels,
            digest=digest,
            approval_digest=approval_digest(digest, version, content, rules),
        )

    async def _starting_approval(self, operation: Operation) -> Decided | None:
        """Match an approval that the caller started the run with; a mismatch is a refusal."""
        given = self._options.approvals.get(operation.operation_id)
        if given is None or not operation.operation_id:
            return None
        signed = given if isinstance(given, SignedApproval) else None
        review = Review(
            operation_id=operation.operation_id,
            version=given if isinstance(given, int) else given.version,
            approver=signed.approver if signed else "start",
            token=signed.token if signed else None,
            verdict=Verdict.APPROVE,
        )
        code = await self._held_to_account(review, operation)
        if code is None:
            return Decided(review=review, source="start", at=workflow.now().isoformat())
        self._desk.refuse(code, workflow.now(), review)
        return None

    async def _held_to_account(self, review: Review, operation: Operation) -> RefusalCode | None:
        """Return why an approval that came with the start does not count, or None.

        Where several people have to approve, one who did so beforehand is not enough.
        """
        trust = self._desk.trust
        if review.version != operation.version:
            return RefusalCode.STALE_VERSION
        if not may_decide(review.approver, trust, signed=review.token is not None):
            return RefusalCode.UNAUTHORISED
        if self.room.approvals_required > 1:
            return RefusalCode.UNAUTHORISED
        if trust.local:
            return None
        code, _ = await self.room.verify(review, operation)
        return code

    def _preflight(self, operation: Operation, intent: Intent) -> Ending | None:
        """Stop what could never be sent before a person is asked about it."""
        if intent.issue != self.target.issue:
            self._note(operation, "blocked")
            reason = "a write may only touch the request's issue"
            return review(FailureClass.POLICY_BLOCK, reason, intent.proposal)
        if not self._limits.labels.issuperset(operation.labels):
            self._note(operation, "blocked")
            reason = "the write names a label that this policy does not permit"
            return review(FailureClass.POLICY_BLOCK, reason, intent.proposal)
        if self._state.sent.get(operation.operation_id, operation.digest) != operation.digest:
            reason = "operation id reused with other content"
            return self._conflict(operation, reason, intent.proposal)
        return None

    async def _ask(self, intent: Intent, operation: Operation) -> Ending | Operation:
        """Show the operation to whoever decides, unless it could not be carried out.

        What is shown is returned: it names the labels by id as well, where they have ids.
        """
        at = workflow.now().isoformat()
        request = PreviewRequest(target=self.target, labels=operation.labels, at=at)
        try:
            shown = await calls.preview(request)
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            self._note(operation, "blocked")
            reason = "the tracker could not show the issue"
            return tool_fault(self._state, calls.failure_of(error), reason, intent.proposal)
        self._state.charge_time(shown.took_ms)
        problem = self._unshowable(operation, shown, intent.proposal)
        if problem is not None:
            return problem
        pinned = operation.model_copy(update={"label_ids": shown.label_ids})
        asked = pinned if shown.label_ids else operation
        await self.room.ask(intent, asked, shown)
        return asked

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
            # The preflight has seen that they are labels of the rules.
            names = ", ".join(f'"{label}"' for label in shown.missing)
            reason = f"the tracker does not have every label of this write: {names}"
            return review(FailureClass.POLICY_BLOCK, reason, proposal)
        if shown.removed:
            self._note(operation, "blocked")
            return review(FailureClass.POLICY_BLOCK, LABEL_REMOVED, proposal)
        if shown.too_many:
            self._note(operation, "blocked")
            reason = "the issue would have more labels than it may"
            return review(FailureClass.POLICY_BLOCK, reason, proposal)
        if shown.content_digest != self._context.content_digest:
            return self._conflict(operation, "the issue changed after it was read", proposal)
        return None

    async def _send(self, intent: Intent, operation: Operation, decided: Decided) -> Ending | None:
        request = WriteRequest(
            scope=self._scope,
            tenant=self._options.context.tenant,
            operation=operation,
            approval=Approval(
                approver=decided.review.approver,
                source=decided.source,
                decided_at=decided.at,
                expires_at=self._send_by(decided),
            ),
            content_digest=self._context.content_digest,
            policy_digest=self._context.provenance.policy,
            timeout_ms=self._limits.tools[operation.tool].timeout_ms,
            timed=self._context.timed,
        )
        self._state.sent[operation.operation_id] = operation.digest
        try:
            result = await calls.write(operation.tool, request)
        except ActivityError as error:
            if is_cancelled_exception(error):
                # The run is over; what became of the write is settled without it.
                raise
            result = WriteResult(outcome=WriteOutcome.UNKNOWN, detail="the outcome is not known")
        self._state.charge_time(result.took_ms)
        return self._settled(intent, operation, result)

    def _send_by(self, decided: Decided) -> str | None:
        """A waited-for approval must be used within one more window; a starting one has none."""
        window = timedelta(seconds=self._limits.approval_window_seconds)
        return (datetime.fromisoformat(decided.at) + window).isoformat() if window else None

    def _settled(self, intent: Intent, operation: Operation, result: WriteResult) -> Ending | None:
        match result.outcome:
            case WriteOutcome.APPLIED if result.evidence is not None:
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
            case _:
                # Also what is said to be applied, without a receipt.
                self._note(operation, "unknown")
                fault = FailureClass.TOOL_TIMEOUT
                reason = result.detail or "the write's outcome is not known"
                return review_with_evidence(self._state, fault, reason, intent.proposal)

    def _applied(self, intent: Intent, operation: Operation, result: WriteResult) -> None:
        if result.evidence is not None:
            self._state.keep_receipt(result.evidence)
        repeated = bool(result.earlier) or operation.operation_id in self._state.applied
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
