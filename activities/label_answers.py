"""How one attempt at a write ends: with an answer, or by asking to be tried again."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from triage.contracts.payloads import WriteOutcome, WriteResult
from triage.storage.operations import Moved, Settled
from triage.trackers.base import GONE_CODES, PERMISSION_CODES

RETRY_SECONDS: Final = 1.0
OWNER: Final = "operations"
"""Whoever looks after what nobody else can settle."""
TARGET_GONE: Final = "target_gone"
_TOLD_APART: Final = frozenset({WriteOutcome.CONFLICT, WriteOutcome.FAILED})
"""Outcomes that a reason names; one that names none was refused."""


def told(code: str) -> tuple[str, str | None]:
    """Return the reason for a refusal, and who has to look at it, if anybody."""
    reason = f"{TARGET_GONE}: {code}" if code in GONE_CODES else code
    return reason, OWNER if code in PERMISSION_CODES else None


def refused(detail: str) -> WriteResult:
    """Return the answer that this system does not do it."""
    return WriteResult(outcome=WriteOutcome.REFUSED, detail=detail)


def no_label(missing: Iterable[str]) -> str:
    """Return the reason for a write that the tracker lacks labels for; the rules name them all."""
    names = ", ".join(f'"{label}"' for label in missing)
    return f"a label does not exist: {names}"


def given_up_reason(outcome: WriteOutcome, why: str) -> str:
    """Return the ledger's reason for a write that was given up with `outcome`.

    The attempt that comes next, after a lost worker say, must answer what this one did.
    """
    return f"{outcome.value}: {why}" if outcome in _TOLD_APART else why


def given_up(reason: str | None) -> WriteResult:
    """Return what was answered when a write was given up, from the ledger's reason."""
    why = reason or "the operation was given up before"
    name, _, rest = why.partition(": ")
    if name in _TOLD_APART:
        return WriteResult(outcome=WriteOutcome(name), detail=rest)
    return refused(why)


def told_earlier(answer: Settled, result: WriteResult) -> WriteResult:
    """Say of a repeat's answer whether another execution of this run has written."""
    own = answer.owner.startswith(f"{activity.info().workflow_run_id}/")
    return result if own else result.model_copy(update={"earlier": True})


def unknown_result() -> WriteResult:
    """Return the answer that only a person can say what was done."""
    return WriteResult(outcome=WriteOutcome.UNKNOWN, detail="the write's outcome needs a person")


def must(moved: Moved) -> None:
    """Go on only if the ledger moved; an attempt that lost its epoch starts over."""
    if not moved:
        raise later(moved.retry_after_seconds or RETRY_SECONDS)


def later(seconds: float) -> ApplicationError:
    """Return the error that makes Temporal try the activity again after `seconds`."""
    return ApplicationError(
        "the ledger makes this attempt wait",
        type="try_later",
        next_retry_delay=timedelta(seconds=max(seconds, 0.05)),
    )
