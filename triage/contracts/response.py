"""The response of a run: exactly twelve fields, whatever happened."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from triage.contracts.base import Contract
from triage.contracts.failures import FailureClass


class Status(StrEnum):
    """Where a run stands; the last three are terminal."""

    RECEIVED = "received"
    VALIDATED = "validated"
    DECIDING = "deciding"
    TOOL_PENDING = "tool_pending"
    TOOL_COMPLETE = "tool_complete"
    REVIEW_REQUIRED = "review_required"
    COMPLETED = "completed"
    FAILED = "failed"


TERMINAL: Final = frozenset({Status.REVIEW_REQUIRED, Status.COMPLETED, Status.FAILED})


class TriageResponse(Contract):
    """What a run answers. `reason` is a short sentence for people; programs read `failure`.

    Source: the production agent's AgentResponse.
    """

    run_id: str
    request_id: str
    status: Status
    route: str | None
    labels: tuple[str, ...]
    owner: str | None
    evidence_ids: tuple[str, ...]
    failure: FailureClass | None
    reason: str
    tool_sequence: tuple[str, ...]
    retries: int
    steps: int
