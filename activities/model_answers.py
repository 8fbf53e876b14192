"""An adapter's answer, held to a deadline, a shape and a size before anything is made of it.

Why it exists: an adapter may be anybody's. What it raises, claims or says goes into histories and
responses that outlive access rules, so an answer is made anew of the few parts that are an
adapter's to say, and each of these is checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, TypeVar

from temporalio import activity

from activities.model_words import without_secrets
from triage.contracts.base import MAX_REASON_CHARS, clamp
from triage.contracts.canonical import canonical_json, clean, clean_text
from triage.contracts.decision import MAX_DECISION_BYTES
from triage.contracts.model_faults import MAX_RETRY_AFTER_SECONDS
from triage.contracts.payloads import DecideOutcome, DecideResult
from triage.policy.redaction import redact

Answer = TypeVar("Answer")

MAX_DETAIL_CHARS: Final = 16_384
"""As much of an adapter's own words is looked through for secrets; of more, nothing is told."""


class AdapterError(Exception):
    """An adapter raised. What it said may hold anything, so nothing of it goes on."""


async def asked(ask: Callable[[], Awaitable[Answer]], deadline: timedelta) -> Answer:
    """Ask an adapter, within a deadline.

    An adapter that raises has a bug; asking it again would not help. Only the activity's own
    cancellation goes through, and Ctrl-C.

    Raises:
        TimeoutError: nothing came in time.
        AdapterError: it raised; its error's type is in the log.
    """
    try:
        async with asyncio.timeout(deadline.total_seconds()):
            return await ask()
    except (TimeoutError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        activity.logger.error("the model adapter raised %s", type(error).__name__)
        raise AdapterError from None


async def answered(ask: Callable[[], Awaitable[object]], deadline: timedelta) -> DecideResult:
    """Ask an adapter, and return its answer checked, or the outcome that stands in for it."""
    try:
        return checked(await asked(ask, deadline))
    except TimeoutError:
        return DecideResult(outcome=DecideOutcome.TIMEOUT)
    except AdapterError:
        return invalid("the model adapter failed")


def _is_cancelled() -> bool:
    """Return whether it is the activity that is cancelled, and not something in what it called."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def invalid(detail: str) -> DecideResult:
    """Return the outcome of an answer that is of no use."""
    return DecideResult(outcome=DecideOutcome.INVALID, detail=detail)


def checked(result: object) -> DecideResult:
    """Return what an adapter may say, if it can be carried, else that it cannot.

    That is the outcome, the decision, the detail, the fault and the pause: never what it cost, nor
    how often it was tried.
    """
    if not isinstance(result, DecideResult):
        return invalid("the model adapter did not answer as one")
    try:
        # First: to look for secrets takes far longer, and of what is refused nothing is told.
        if len(canonical_json(clean(result.decision, "the answer"))) > MAX_DECISION_BYTES:
            return invalid(f"the answer is larger than {MAX_DECISION_BYTES} bytes")
        kept = _kept(result)
        kept.model_dump_json()
    except Exception:  # noqa: BLE001 - a result that was not validated may hold anything
        return invalid("the answer cannot be written as JSON")
    return kept


def _kept(result: DecideResult) -> DecideResult:
    """Make a result anew, of what is not as usual: only that is written into the history."""
    pause = result.retry_after_seconds
    parts: dict[str, object] = {
        "decision": without_secrets(result.decision),
        "detail": _detail(result.detail),
        "fault": result.fault,
        "retry_after_seconds": None
        if pause is None
        else min(max(0, pause), MAX_RETRY_AFTER_SECONDS),
    }
    told = {name: value for name, value in parts.items() if value is not None and value != ""}
    return DecideResult.model_validate({"outcome": result.outcome, **told})


def _detail(words: str) -> str:
    """Return an adapter's words as a reviewer may read them: bounded, on one line, no secrets."""
    if len(words) > MAX_DETAIL_CHARS:
        return "the model adapter said too much"
    shown = "".join(char if char.isprintable() else " " for char in clean_text(words))
    return clamp(redact(shown), MAX_REASON_CHARS)
