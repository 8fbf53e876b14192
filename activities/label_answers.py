"""How one attempt at a write ends: with an answer, or by asking to be tried again. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from temporalio.exceptions import ApplicationError

from triage.contracts.payloads import WriteOutcome, WriteResult
from triage.storage.operations import Moved
from triage.trackers.base import GONE_CODES, PERMISSION_CODES

RETRY_SECONDS: Final = 1.0
OWNER: Final = "operations"
"""Whoever looks after what nobody else can settle."""
TARGET_GONE: Final = "target_gone"


def told(code: str) -> tuple[str, str | None]:
    """Return the reason for a refusal, and who has to look at it, if anybody."""
    reason = f"{TARGET_GONE}: {code}" if code in GONE_CODES else code
    return reason, OWNER if code in PERMISSION_CODES else None


def refused(detail: str) -> WriteResult:
    """Return the answer that this system does not do it."""
    return WriteResult(outcome=WriteOutcome.REFUSED, detail=detail)


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
