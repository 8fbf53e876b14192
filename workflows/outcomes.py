"""Building the one response of a run from its state and how it ended. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from triage.contracts.base import clamp
from triage.contracts.failures import FailureClass
from triage.contracts.intent import NOTHING, Proposal
from triage.contracts.request import run_id_of
from triage.contracts.response import Status, TriageResponse
from triage.policy.security import SECURITY_REASON, SECURITY_ROUTE
from workflows.state import RunState


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ends."""

    status: Status
    reason: str
    failure: FailureClass | None = None
    proposal: Proposal = NOTHING


def failed(failure: FailureClass, reason: str) -> Ending:
    """Return an ending that needs a correction, not a review."""
    return Ending(Status.FAILED, reason, failure)


def review(failure: FailureClass | None, reason: str, proposal: Proposal = NOTHING) -> Ending:
    """Return an ending that hands the run to a person."""
    return Ending(Status.REVIEW_REQUIRED, reason, failure, proposal)


def tool_fault(
    state: RunState, failure: FailureClass, reason: str, proposal: Proposal = NOTHING
) -> Ending:
    """Return the ending of a failed tool call.

    Partial success is never flattened: with evidence already returned, the run goes to review
    and keeps it; with none, it failed.
    """
    if not state.evidence:
        return failed(failure, reason)
    return review_with_evidence(state, failure, reason, proposal)


def read_fault(state: RunState, failure: FailureClass, tool: str) -> Ending:
    """Return the ending of a read that brought nothing; see `tool_fault`."""
    reason = "timed out" if failure is FailureClass.TOOL_TIMEOUT else "failed"
    return tool_fault(state, failure, f"{tool} {reason}")


def review_with_evidence(
    state: RunState, failure: FailureClass, reason: str, proposal: Proposal = NOTHING
) -> Ending:
    """Return an ending in review that keeps all evidence that the run has."""
    kept = tuple(dict.fromkeys(item.id for item in state.evidence))
    return review(failure, reason, replace(proposal, evidence_ids=kept))


def raised(ending: Ending) -> Ending:
    """Return the ending of a run whose issue is one for a security review: never a lower one.

    A failure stays one: it says nothing of the issue.
    """
    if ending.status is Status.FAILED:
        return ending
    is_low = ending.status is Status.COMPLETED or ending.proposal.route != SECURITY_ROUTE
    reason = SECURITY_REASON if is_low and ending.failure is None else ending.reason
    proposal = replace(ending.proposal, route=SECURITY_ROUTE)
    return review(ending.failure, reason, proposal)


def conclude(state: RunState, request_id: str, ending: Ending) -> TriageResponse:
    """Move the state to its end, and keep and return the response."""
    state.move(ending.status)
    state.response = TriageResponse(
        run_id=run_id_of(request_id),
        request_id=request_id,
        status=ending.status,
        route=ending.proposal.route,
        labels=ending.proposal.labels,
        owner=ending.proposal.owner,
        evidence_ids=ending.proposal.evidence_ids,
        failure=ending.failure,
        reason=clamp(ending.reason),
        tool_sequence=tuple(state.tool_sequence),
        retries=state.retries,
        steps=state.steps,
    )
    return state.response
