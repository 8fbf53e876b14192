"""IssueTriage: the workflow that people start, signal, ask and review.

The surface only: raw input comes in, the loop runs, one response goes out. Handlers validate
and hand over; they never act, and no message of any name, number, shape or encoding can break
the run or get lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from workflows.loop import TriageLoop

with workflow.unsafe.imports_passed_through():
    from triage.contracts import names
    from triage.contracts.approval import (
        RefusalCode,
        Review,
        ReviewAnswer,
        Verdict,
        parse_review,
    )
    from triage.contracts.base import ContractError
    from triage.contracts.failures import FailureClass
    from triage.contracts.options import DEFAULT_TENANT
    from triage.contracts.request import TriageRequest, parse_request
    from triage.contracts.response import TriageResponse
    from triage.contracts.search_attributes import (
        TRIAGE_FAILURE,
        TRIAGE_ROUTE,
        TRIAGE_STATUS,
        TRIAGE_TENANT,
    )
    from triage.contracts.state import MutationRecord, PendingView, StateView
    from workflows.carried import HistoryFull
    from workflows.outcomes import conclude, failed
    from workflows.review_desk import ReviewDesk
    from workflows.start import (
        MAX_EDIT_VALUES,
        MAX_REQUEST_BYTES,
        RefusedStart,
        Start,
        read_json,
        read_review_json,
        read_start,
    )
    from workflows.state import RunState
    from workflows.waiting import may_carry

_VERDICTS = {names.SIGNAL_APPROVE: Verdict.APPROVE, names.SIGNAL_REJECT: Verdict.REJECT}


@workflow.defn(name=names.ISSUE_TRIAGE)
class IssueTriage:
    """One triage of one issue."""

    @workflow.init
    def __init__(self, *args: Any) -> None:  # noqa: ANN401 - whatever was sent
        """Read the input before any message is handled: no message is too early."""
        start = read_start(args, goes_on=bool(workflow.info().continued_run_id) and may_carry())
        carried = start.carried if isinstance(start, Start) else None
        self._start = start
        self._state = carried.state if carried else RunState()
        self._desk = ReviewDesk(self._state)
        self._loop: TriageLoop | None = None
        if isinstance(start, Start):
            self._loop = TriageLoop(start, self._state, self._desk)

    @workflow.run
    async def run(self, *args: Any) -> TriageResponse:  # noqa: ANN401, ARG002 - read in __init__
        """Triage the issue in `args[0]` with the options in `args[1]`.

        Every outcome of the domain, invalid input included, is a response; only a fault of the
        platform fails the execution. A run whose history has grown long continues as new.
        """
        try:
            response = await self._respond()
        except HistoryFull:
            await workflow.wait_condition(workflow.all_handlers_finished)
            workflow.continue_as_new(args=self._loop.handed_on() if self._loop else [])
        await workflow.wait_condition(workflow.all_handlers_finished)
        return response

    async def _respond(self) -> TriageResponse:
        start, tenant = self._start, DEFAULT_TENANT
        if isinstance(start, RefusedStart) or self._loop is None:
            reason = start.reason if isinstance(start, RefusedStart) else "there is no request"
            ending = failed(FailureClass.INVALID_INPUT, reason)
            request_id = start.request_id if isinstance(start, RefusedStart) else "invalid"
        else:
            ending = await self._loop.run()
            request_id, tenant = start.request.request_id, start.options.context.tenant
        response = conclude(self._state, request_id, ending)
        _publish(response, tenant)
        return response

    @workflow.signal(dynamic=True, description="approve, reject or edit; anything else is kept")
    def on_signal(self, name: str, args: Sequence[RawValue]) -> None:
        """Take any signal: what is not a well-formed message of ours is kept as a refusal."""
        try:
            if len(args) != 1:
                raise ContractError("a signal has exactly one argument")
            if name == names.SIGNAL_EDIT:
                self._edit(args[0])
            else:
                self._review(name, args[0])
        except ContractError:
            self._desk.refuse(RefusalCode.MALFORMED, workflow.now())

    def _edit(self, raw: RawValue) -> None:
        request = parse_request(
            read_json(raw, "edit", max_values=MAX_EDIT_VALUES, max_bytes=MAX_REQUEST_BYTES)
        )
        self._change(request)

    def _change(self, request: TriageRequest) -> None:
        if self._loop is None or request.request_id != self._loop.request.request_id:
            raise ContractError("an edit is of another request")
        self._loop.edit = request
        # Whatever is still sent for what was pending comes too late, also within this task.
        self._desk.close()

    def _review(self, name: str, raw: RawValue) -> None:
        if name not in _VERDICTS:
            raise ContractError("unknown signal")
        review = parse_review(read_review_json(raw, name), _VERDICTS[name])
        code = self._desk.take(review, workflow.now())
        if code is not None:
            self._desk.refuse(code, workflow.now(), review)

    @workflow.update(name=names.UPDATE_REVIEW, description="approve or reject, with an answer")
    async def review(self, *args: Any) -> ReviewAnswer:  # noqa: ANN401 - checked by the validator
        """Decide on the pending operation and say at once whether the decision counts."""
        review = _read_review(args)
        code = self._desk.check(review, workflow.now())
        if code is None and self._loop is not None and self._desk.needs_proof(review):
            code = await self._loop.prove(review)
        else:
            code = code or self._desk.receive(review, "update", workflow.now())
        version = self._state.version
        if code is None:
            return ReviewAnswer(accepted=True, code="accepted", version=version)
        reason = self._desk.reason(code, review)
        return ReviewAnswer(accepted=False, code=code, version=version, reason=reason)

    @review.validator
    def _check_review(self, *args: Any) -> None:  # noqa: ANN401 - whatever was sent
        """Refuse what would not count before it leaves a trace in the history."""
        try:
            review = _read_review(args)
        except ContractError as error:
            raise _refused(RefusalCode.MALFORMED, str(error)) from None
        code = self._desk.check(review, workflow.now())
        if code is not None:
            raise _refused(code, self._desk.reason(code, review), self._desk.check_of(code, review))

    @workflow.query(name=names.QUERY_STATE, description="the full state of the run")
    def state(self) -> StateView:
        """Return the full state."""
        return self._state.view()

    @workflow.query(name=names.QUERY_PENDING, description="the exact thing to approve, or null")
    def pending(self) -> PendingView | None:
        """Return the pending operation."""
        return self._state.pending

    @workflow.query(name=names.QUERY_MUTATIONS, description="which writes ran, and why")
    def mutations(self) -> list[MutationRecord]:
        """Return a record of every write that was proposed and permitted by policy."""
        return self._state.mutations


def _read_review(args: Sequence[Any]) -> Review:
    if len(args) != 1:
        raise ContractError("a review has exactly one argument")
    return parse_review(read_review_json(args[0], "review"), None)


def _refused(code: RefusalCode, message: str, check: str = "") -> ApplicationError:
    """Return the answer to a refused update; being counted and logged is its only trace."""
    meter = workflow.metric_meter()
    meter.create_counter("triage_refused_reviews").add(1, {"code": code.value})
    workflow.logger.warning("a review was refused: %s", check or code.value)
    return ApplicationError(f"{code}: {message}", type=code.value, non_retryable=True)


def _publish(response: TriageResponse, tenant: str) -> None:
    """Write the run's search attributes, once."""
    updates = [
        TRIAGE_STATUS.value_set(response.status.value),
        TRIAGE_TENANT.value_set(tenant),
    ]
    if response.route is not None:
        updates.append(TRIAGE_ROUTE.value_set(response.route))
    if response.failure is not None:
        updates.append(TRIAGE_FAILURE.value_set(response.failure.value))
    workflow.upsert_search_attributes(updates)
