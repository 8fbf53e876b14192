"""What an answer of GitHub's proves, or the lack of one. Pure.

An error is a definite no only where GitHub is known to have done nothing. Whatever is not on that
list may have happened, if the request was one that writes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

from triage.trackers.base import TrackerError, TrackerRefused, TrackerUnavailable

MAX_PAUSE_SECONDS: Final = 3_600.0
SECONDARY_PAUSE_SECONDS: Final = 60.0
"""How long to wait where GitHub limits us and does not say for how long."""

_GONE: Final[Mapping[int, str]] = {
    301: "transferred",
    302: "transferred",
    307: "transferred",
    308: "transferred",
    404: "not_found",
    410: "gone",
}
_REFUSALS: Final[Mapping[int, str]] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    405: "method_not_allowed",
    422: "validation_failed",
    451: "legally_unavailable",
}
_FORBIDDEN: Final = 403
_TOO_MANY: Final = 429
_OK: Final = frozenset({200, 201})
_WORDS_BYTES: Final = 2_000
_MAX_DIGITS: Final = 15
_LIMITING: Final = (b"rate limit", b"abuse detection")


def problem_of(
    status: int, headers: Mapping[str, str], body: bytes, *, about: str, writing: bool
) -> TrackerError | None:
    """Return what to raise for an answer, or None for a success.

    Args:
        status: of the answer.
        headers: of the answer, by names in lower case.
        body: all of it.
        about: ``issue`` or ``repository``: what was asked for, and may be gone.
        writing: whether the request may have had an effect.
    """
    if status in _OK:
        return None
    words = body[:_WORDS_BYTES].lower()
    if status == _TOO_MANY or (status == _FORBIDDEN and _limits(headers, words)):
        pause = pause_seconds(headers, default=SECONDARY_PAUSE_SECONDS)
        message = "GitHub limits the rate"
        return TrackerUnavailable(message, effect_possible=False, retry_after_seconds=pause)
    if status == _FORBIDDEN and b"locked" in words:
        return TrackerRefused("issue_locked", "the issue is locked")
    if status in _GONE:
        return TrackerRefused(f"{about}_{_GONE[status]}", f"GitHub does not have the {about} there")
    if status in _REFUSALS:
        return TrackerRefused(_REFUSALS[status], "GitHub refuses this")
    return TrackerUnavailable(
        f"GitHub answered {status}",
        effect_possible=writing,
        retry_after_seconds=pause_seconds(headers),
    )


def pause_seconds(headers: Mapping[str, str], default: float | None = None) -> float | None:
    """Return how long GitHub asks to be left alone: at least nothing, at most an hour.

    Both forms of Retry-After count, and the reset time once nothing of the rate is left.
    """
    asked = _retry_after(headers.get("retry-after", ""))
    if asked is None and headers.get("x-ratelimit-remaining") == "0":
        asked = _until(headers.get("x-ratelimit-reset", ""))
    return default if asked is None else min(max(asked, 0.0), MAX_PAUSE_SECONDS)


def _retry_after(text: str) -> float | None:
    if _is_number(text):
        return float(text)
    try:
        return parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None


def _until(text: str) -> float | None:
    return float(text) - time.time() if _is_number(text) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS


def _limits(headers: Mapping[str, str], words: bytes) -> bool:
    if "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0":
        return True
    return any(phrase in words for phrase in _LIMITING)
