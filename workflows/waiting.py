"""Waiting for a person: an operation is shown, reviews come in, absolute deadlines pass.

Messages never move a deadline, and however many come, the wait goes on: a history that grows too
long is left behind with the wait as it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from triage.contracts.approval import RefusalCode, Review
    from triage.contracts.intent import Intent
    from triage.contracts.payloads import Operation, Preview
    from triage.contracts.response import Status
    from triage.contracts.search_attributes import (
        TRIAGE_STATUS,
        TRIAGE_TENANT,
        TRIAGE_WAITING_SINCE,
    )
    from triage.contracts.state import PendingView
    from triage.contracts.verification import VerifyRequest
    from workflows import calls
    from workflows.carried import Deadline, HistoryFull, Wait
    from workflows.review_desk import Decided, ReviewDesk, Source
    from workflows.start import Limits

_NOTICES: Final = ("reminder", "escalation")
_SHORTEST: Final = timedelta(milliseconds=1)
"""Of a timer: a shorter one is none, and whether there is one must not depend on a clock."""
VERIFY_AGAIN: Final = "verify-again-what-came-to-decide"
"""The patch that looks whether a review has become the decision while it was verified."""


LAST_WORD: Final = "last-word-when-nobody-asks"
"""The patch that looks for an edit once no review is verified any more."""


async def overtaken(interrupted: Callable[[], bool]) -> bool:
    """Return whether an edit has come before a run's last word.

    A review that is still verified holds a run open that has come to its end, and an edit may come
    meanwhile, too.
    """
    if not workflow.all_handlers_finished() and workflow.patched(LAST_WORD):
        await workflow.wait_condition(workflow.all_handlers_finished)
    return interrupted()


def history_is_full() -> bool:
    """Whether the server suggests that this run continues as new.

    A run with a schedule or a retry rule of its own never does: the server starts those anew from
    their input, too, and what is carried must have come from nobody but the run itself.
    """
    return may_carry() and workflow.info().is_continue_as_new_suggested()


def may_carry() -> bool:
    """Whether only the run itself can have handed something on to this execution."""
    info = workflow.info()
    return not info.cron_schedule and info.retry_policy is None


async def _recorded(shown: Preview) -> datetime | None:
    """Return when an operation was shown, by the history: a replay's clock may tell another time.

    The SDK (temporalio 1.35.0) gives the time at which a local activity ended, or of the workflow
    task in which its result was looked at: a query that came meanwhile makes these two. That of the
    task which follows a timer is the same in every replay.
    """
    if shown.at is None or shown.took_ms is None:
        return None
    if shown.late:
        await workflow.sleep(_SHORTEST)
        return workflow.now()
    return datetime.fromisoformat(shown.at) + timedelta(milliseconds=shown.took_ms)


def _count(name: str) -> None:
    """Count a reminder, an escalation or an expiry, and show the latest to whoever looks."""
    meter = workflow.metric_meter()
    meter.create_counter("triage_approval_deadlines").add(1, {"deadline": name})
    workflow.set_current_details(f"waits for a person; {name} at {workflow.now().isoformat()}")


class WaitingRoom:
    """Where one run's operations wait for their review, one at a time.

    Attributes:
        approvals_required: how many people have to approve an operation.
        waited: how long this run has waited in waits that are over.
    """

    def __init__(
        self,
        desk: ReviewDesk,
        *,
        scope: str,
        tenant: str,
        limits: Limits,
        approvals_required: int,
        interrupted: Callable[[], bool],
    ) -> None:
        self._desk = desk
        self._scope = scope
        self._tenant = tenant
        self._limits = limits
        self.approvals_required = approvals_required
        self._interrupted = interrupted
        self._asked: Operation | None = None
        self._wait: Wait | None = None
        self._deadlines: list[Deadline] = []
        self.waited = timedelta()

    async def ask(self, intent: Intent, operation: Operation, shown: Preview) -> Wait:
        """Show an operation, and say to whoever looks for it that a person is waited for."""
        recorded = await _recorded(shown)
        began = recorded or workflow.now()
        view = self._view(intent, operation, shown, began)
        wait = Wait(
            intent=intent,
            operation=operation,
            view=view,
            began=began.isoformat(),
            deadlines=self._deadlines_from(began),
            by_timers=recorded is not None,
        )
        self.enter(wait)
        workflow.upsert_search_attributes(
            [
                TRIAGE_STATUS.value_set(Status.TOOL_PENDING.value),
                TRIAGE_TENANT.value_set(self._tenant),
                TRIAGE_WAITING_SINCE.value_set(began),
            ]
        )
        return wait

    def enter(self, wait: Wait) -> None:
        """Begin a wait, or go on with one that another execution of this run began."""
        self._wait, self._asked = wait, wait.operation
        self._deadlines = [*wait.deadlines]
        self._desk.open(wait.view, wait.decided, wait.subjects)

    def carried(self) -> Wait | None:
        """Return the wait as it stands, if there is one."""
        if self._wait is None:
            return None
        view = self._desk.shown or self._wait.view
        return replace(
            self._wait,
            view=view,
            deadlines=tuple(self._deadlines),
            decided=self._desk.decided,
            subjects=self._desk.subjects,
        )

    async def decision(self) -> Decided | None:
        """Return the first review that counts; None after an edit or the last deadline.

        Raises:
            HistoryFull: the wait goes on in another execution.
        """
        wait = self._wait
        if wait is None:
            return None
        while self._deadlines and not self._is_over():
            came = await self._listen(by_timers=wait.by_timers)
            if wait.by_timers:
                self._pass_first(unless=came)
            else:
                self._pass_deadlines()
            if self._deadlines and not self._is_over() and history_is_full():
                raise HistoryFull
        self._wait = None
        self._desk.close()
        workflow.upsert_search_attributes([TRIAGE_WAITING_SINCE.value_unset()])
        self.waited += workflow.now() - datetime.fromisoformat(wait.began)
        return self._desk.decided

    async def _listen(self, *, by_timers: bool) -> bool:
        """Wait until something came or the history is full, or else the next deadline is reached.

        Returns:
            Whether it was not the deadline.
        """
        left = datetime.fromisoformat(self._deadlines[0].at) - workflow.now()
        came = True
        try:
            await workflow.wait_condition(
                lambda: self._is_over() or bool(self._desk.unproven) or history_is_full(),
                timeout=max(left, _SHORTEST if by_timers else timedelta()),
            )
        except TimeoutError:
            came = False
        await self._prove_all()
        return came

    def _pass_first(self, *, unless: bool) -> None:
        """Pass the deadline whose timer has fired; one that is late gets a timer of its own."""
        if not unless and not self._is_over():
            _count(self._deadlines.pop(0).name)

    def _pass_deadlines(self) -> None:
        now = workflow.now()
        while (
            self._deadlines
            and not self._is_over()
            and datetime.fromisoformat(self._deadlines[0].at) <= now
        ):
            _count(self._deadlines.pop(0).name)

    def _deadlines_from(self, began: datetime) -> tuple[Deadline, ...]:
        """Return what the wait runs into, in order; the last is its end. Messages move none."""
        window = self._limits.approval_window_seconds
        seconds = [*zip(_NOTICES, self._limits.reminders_seconds, strict=True)]
        inside = sorted((after, name) for name, after in seconds if 0 < after < window)
        return tuple(
            Deadline(name=name, at=(began + timedelta(seconds=after)).isoformat())
            for after, name in [*inside, (window, "expired")]
        )

    def _is_over(self) -> bool:
        """Whether the wait has an answer, or an edit has made the question void."""
        return self._desk.decided is not None or self._interrupted()

    async def _prove_all(self) -> None:
        """Verify the signed reviews that came by signal, in the order in which they came."""
        while self._desk.unproven and not self._is_over():
            claimed = self._desk.unproven[0]
            code = await self.prove(claimed, "signal")
            # Only now: a run that continues as new meanwhile takes it along.
            self._desk.unproven.remove(claimed)
            if code is not None:
                self._desk.refuse(code, workflow.now(), claimed)

    async def prove(self, claimed: Review, source: Source) -> RefusalCode | None:
        """Verify a review's signature and take it; return why it does not count, or None."""
        while self._asked is not None:
            decides = self._desk.would_decide(claimed)
            code, subject = await self.verify(claimed, self._asked, decides=decides)
            if code is not None:
                return code
            if decides or not self._has_come_to_decide(claimed):
                return self._desk.receive(claimed, source, workflow.now(), subject)
        return RefusalCode.NOT_PENDING

    def _has_come_to_decide(self, claimed: Review) -> bool:
        """Whether others approved while this review was verified as one of several.

        It is the decision now, and has to be recorded as that before it counts; where nothing is
        waited for any more, it decides nothing.
        """
        is_last = self._desk.shown is not None and self._desk.would_decide(claimed)
        return is_last and workflow.patched(VERIFY_AGAIN)

    async def verify(
        self, claimed: Review, operation: Operation, *, decides: bool = True
    ) -> tuple[RefusalCode | None, str | None]:
        """Verify a signature; return why it does not count, if so, and the signer's stable id."""
        if claimed.token is None:
            return RefusalCode.UNAUTHORISED, None
        try:
            question = self._question(claimed, claimed.token, operation)
            result = await calls.verify_approval(
                question if decides else question.model_copy(update={"decides": False})
            )
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            # Nobody could say whether it is good: it does not count, and the wait goes on.
            return RefusalCode.UNAUTHORISED, None
        return (None if result.accepted else RefusalCode(result.code)), result.subject

    def _question(self, claimed: Review, token: str, operation: Operation) -> VerifyRequest:
        window = timedelta(seconds=self._limits.approval_window_seconds)
        return VerifyRequest(
            scope=self._scope,
            tenant=self._tenant,
            operation_id=operation.operation_id,
            version=operation.version,
            operation_digest=operation.digest,
            approval_digest=operation.approval_digest,
            verdict=claimed.verdict,
            approver=claimed.approver,
            token=token,
            use_by=(workflow.now() + window).isoformat() if window else None,
            subjects=self._desk.subjects,
            barred=self._desk.trust.authors,
        )

    def _view(
        self, intent: Intent, operation: Operation, shown: Preview, began: datetime
    ) -> PendingView:
        window = timedelta(seconds=self._limits.approval_window_seconds)
        several = {"approvals_required": self.approvals_required}
        view = PendingView(
            operation_id=operation.operation_id,
            version=operation.version,
            tool=operation.tool,
            target=operation.target.model_dump(mode="json"),
            arguments={"issue_id": operation.target.issue, "labels": list(operation.labels)},
            digest=operation.approval_digest,
            labels_before=shown.labels_before,
            labels_after=shown.labels_after,
            proposed_by=intent.proposed_by,
            proposed_at=began.isoformat(),
            expires_at=(began + window).isoformat(),
        )
        return view.model_copy(update=several) if self.approvals_required > 1 else view
