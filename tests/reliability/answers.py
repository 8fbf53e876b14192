"""What the sender of a review is told, in one word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from temporalio.client import WorkflowUpdateFailedError
from temporalio.service import RPCError, RPCStatusCode

from tests.workflow.runs import Run

ACCEPTED: Final = "accepted"
CLOSED: Final = "closed"
"""The client raises an error: the run has ended."""

TOO_LATE: Final = frozenset({"duplicate", CLOSED})
"""What those are told who decide on what was decided."""


async def told(run: Run, review: Mapping[str, Any]) -> str:
    """Send a review as an update, and return the code that its sender is told."""
    return (await told_why(run, review))[0]


async def told_why(run: Run, review: Mapping[str, Any]) -> tuple[str, str]:
    """Send a review as an update, and return the code and the sentence that its sender is told."""
    try:
        answer = await run.update(dict(review))
    except WorkflowUpdateFailedError as error:
        return str(getattr(error.cause, "type", error.cause)), str(error.cause)
    except RPCError as error:
        only_closed(error)
        return CLOSED, error.message
    return answer.code, answer.reason or ""


def only_closed(error: RPCError) -> None:
    """Let no other fault pass for the answer that a run has ended."""
    if error.status is not RPCStatusCode.NOT_FOUND:
        raise error
