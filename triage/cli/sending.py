"""Sends a review to a run, and says what came of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from pydantic import JsonValue
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from triage.cli.clients import Run
from triage.cli.errors import RefusedError, UnreachableError
from triage.contracts import names
from triage.contracts.approval import RefusalCode, Review, ReviewAnswer


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a review.

    Attributes:
        code: ``accepted``, or why it did not count; None if nothing was sent.
        version: the run's, when it answered or was last looked at.
        reason: a sentence; empty if there is none.
        sent: whether it was sent.
    """

    code: str | None
    version: int
    reason: str = ""
    sent: bool = True

    @property
    def accepted(self) -> bool:
        """Whether it counts."""
        return self.code == "accepted"

    def to_json(self) -> dict[str, JsonValue]:
        """Return it as data."""
        return {
            "accepted": self.accepted,
            "code": self.code,
            "version": self.version,
            "sent": self.sent,
        }


async def send(run: Run, review: Review, version: int) -> Outcome:
    """Send a review and wait for the run's answer.

    Args:
        run: where to.
        review: what.
        version: the run's, as it was shown.

    Raises:
        RefusedError: the run has ended, or cannot take reviews.
        UnreachableError: no answer came, so it may count.
    """
    try:
        answer: ReviewAnswer = await run.handle.execute_update(
            names.UPDATE_REVIEW, review, result_type=ReviewAnswer
        )
    except WorkflowUpdateFailedError as error:
        return _refusal(error, version)
    except (WorkflowUpdateRPCTimeoutOrCancelledError, TimeoutError):
        raise _unknown(run) from None
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise ended(run) from None
        raise
    return Outcome(answer.code, answer.version, answer.reason or "")


def ended(run: Run, outcome: str = "") -> RefusedError:
    """Return what to tell whoever reviews a run that has ended."""
    what = f"; {outcome}" if outcome else ""
    return RefusedError(
        f"{run.id} has ended: no decision counts any more{what}",
        f"'triage show {shlex.quote(run.id)}' shows how",
    )


def _refusal(error: WorkflowUpdateFailedError, version: int) -> Outcome:
    """Read a refusal: its type is the code, its message the code and a sentence."""
    cause = error.cause
    if not isinstance(cause, ApplicationError) or cause.type not in set(RefusalCode):
        raise RefusedError(f"the run did not take the review: {cause}") from None
    reason = cause.message.removeprefix(f"{cause.type}: ")
    return Outcome(cause.type, version, reason)


def _unknown(run: Run) -> UnreachableError:
    return UnreachableError(
        "no answer came, so it is not known whether the decision counted",
        f"'triage show {shlex.quote(run.id)}' shows it",
    )
