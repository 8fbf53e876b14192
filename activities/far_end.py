"""What a tracker's silence means to an activity that only looks: try again, then say so by name.

Why it exists: a run has to end by a name, whatever the far end does. So a look has a deadline and a
number of attempts, and what is left of a foreign error is its kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, Final, NoReturn, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from triage.contracts.failures import FailureClass
from triage.storage.errors import StorageUnavailable
from triage.trackers.base import StoreUnavailable, TrackerTimeout, TrackerUnavailable

Seen = TypeVar("Seen")

LOOK_SECONDS: Final = 5.0
"""Less than the workflow gives a local activity, so that it ends with a reason of ours."""
LOOK_ATTEMPTS: Final = 5
MAX_PAUSE_SECONDS: Final = 60.0


async def look(looking: Coroutine[Any, Any, Seen]) -> Seen:
    """Return what a tracker shows, within `LOOK_SECONDS`.

    Raises:
        ApplicationError: of type ``tool_error`` or ``tool_timeout``; final from the activity's
            attempt `LOOK_ATTEMPTS` on.
        StorageUnavailable: it is our own store that does not answer, which is waited for as long as
            it is for anything else.
        TrackerRefused: the tracker will not show it; what that means depends on what was asked.
    """
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            return await looking
    except (TimeoutError, TrackerTimeout):
        _try_again(FailureClass.TOOL_TIMEOUT, "the tracker does not answer", None)
    except StoreUnavailable as error:
        raise StorageUnavailable(str(error)) from None
    except TrackerUnavailable as error:
        pause = error.retry_after_seconds
        _try_again(FailureClass.TOOL_ERROR, "the tracker does not work", pause)


def _try_again(failure: FailureClass, message: str, pause_seconds: float | None) -> NoReturn:
    pause = None if pause_seconds is None else min(pause_seconds, MAX_PAUSE_SECONDS)
    raise ApplicationError(
        message,
        type=failure.value,
        non_retryable=activity.info().attempt >= LOOK_ATTEMPTS,
        next_retry_delay=None if pause is None else timedelta(seconds=pause),
    ) from None
