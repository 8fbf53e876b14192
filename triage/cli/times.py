"""How times are told to people: to the minute, in UTC; programs get ISO 8601 in JSON."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from triage.story.words import moment, span

_ISO: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")


def told(time: datetime | str) -> str:
    """Return a time as people read it, such as ``2026-01-31 12:34 UTC``.

    Args:
        time: aware, or in ISO 8601; text that is no such time is returned as it is.
    """
    if isinstance(time, datetime):
        return moment(time)
    try:
        return moment(datetime.fromisoformat(time))
    except ValueError:
        return time


def with_times_told(text: str) -> str:
    """Return a sentence with each time in ISO 8601 as people read it."""
    return _ISO.sub(lambda found: told(found[0]), text)


def until(time: str, now: datetime | None = None) -> str:
    """Return a time to come with how far away it is, or with how long it is over."""
    try:
        left = datetime.fromisoformat(time) - (now or datetime.now(UTC))
    except (ValueError, TypeError):
        return told(time)
    away = f"in {span(left)}" if left.total_seconds() > 0 else f"over for {span(-left)}"
    return f"{told(time)} ({away})"
