"""What an answer of the tracker proves. Pure.

An error is a definite no only where the tracker is known to have done nothing; what is not on that
list may have happened.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

from pydantic import JsonValue

from tests.fakes.http_client import Answer, NoAnswer, NotSent
from triage.contracts.base import ContractError
from triage.contracts.canonical import parse_json
from triage.trackers.base import (
    TrackerError,
    TrackerRefused,
    TrackerTimeout,
    TrackerUnavailable,
)

MAX_PAUSE_SECONDS: Final = 3_600.0
SECONDARY_PAUSE_SECONDS: Final = 60.0
"""How long to wait where the tracker limits us and does not say for how long."""

GONE: Final[Mapping[int, str]] = {
    301: "issue_transferred",
    302: "issue_transferred",
    307: "issue_transferred",
    308: "issue_transferred",
    404: "issue_not_found",
    410: "issue_gone",
}
_REFUSALS: Final[Mapping[int, str]] = {
    **GONE,
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    405: "method_not_allowed",
    422: "validation_failed",
    451: "legally_unavailable",
}
_FORBIDDEN: Final = 403
_TOO_MANY: Final = 429
_OK: Final = range(200, 300)


def problem_of(answer: Answer, *, writing: bool) -> TrackerError | None:
    """Return what to raise for an answer, or None for a success.

    Args:
        answer: a whole one.
        writing: whether the request may have had an effect.
    """
    if answer.status in _OK:
        return None
    words = answer.body[:1_000].lower()
    if answer.status == _TOO_MANY or (answer.status == _FORBIDDEN and _limits(answer, words)):
        return TrackerUnavailable(
            "the tracker limits the rate",
            effect_possible=False,
            retry_after_seconds=pause_seconds(answer.headers, default=SECONDARY_PAUSE_SECONDS),
        )
    if answer.status == _FORBIDDEN and b"locked" in words:
        return TrackerRefused("issue_locked", "the issue is locked")
    if answer.status in _REFUSALS:
        return TrackerRefused(_REFUSALS[answer.status], "the tracker refuses this")
    return TrackerUnavailable(
        f"the tracker answered {answer.status}",
        effect_possible=writing,
        retry_after_seconds=pause_seconds(answer.headers),
    )


def problem_without(error: NotSent | NoAnswer, *, writing: bool) -> TrackerError:
    """Return what to raise where no answer came."""
    if isinstance(error, NoAnswer) and error.timed_out:
        return TrackerTimeout(str(error))
    return TrackerUnavailable(
        str(error), effect_possible=writing and not isinstance(error, NotSent)
    )


def value_of(answer: Answer, *, writing: bool) -> JsonValue:
    """Return the JSON of a successful answer.

    Raises:
        TrackerUnavailable: it has none, so it proves nothing.
    """
    try:
        if not answer.headers.get("content-type", "").startswith("application/json"):
            raise ContractError("another type")
        return parse_json(answer.body, "the answer")
    except ContractError:
        raise TrackerUnavailable("the answer is not JSON", effect_possible=writing) from None


def pause_seconds(headers: Mapping[str, str], default: float | None = None) -> float | None:
    """Return how long the tracker asks to be left alone: at least nothing, at most an hour.

    Both forms of Retry-After count, and GitHub's own reset time when nothing remains.
    """
    asked = _retry_after(headers.get("retry-after", ""))
    if asked is None and headers.get("x-ratelimit-remaining") == "0":
        reset = headers.get("x-ratelimit-reset", "")
        asked = float(reset) - time.time() if reset.isdecimal() else None
    if asked is None:
        return default
    return min(max(asked, 0.0), MAX_PAUSE_SECONDS)


def _retry_after(text: str) -> float | None:
    if text.isdecimal():
        return float(text)
    try:
        return parsedate_to_datetime(text).timestamp() - time.time()
    except ValueError:
        return None


def _limits(answer: Answer, words: bytes) -> bool:
    if "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0":
        return True
    return b"rate limit" in words
