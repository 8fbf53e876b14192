"""What leaves a failed activity: our own words, or the name of a foreign error and nothing else.

Why it exists: an exception's text may hold a request body, a header or a secret, and Temporal
keeps it in the history for as long as the namespace keeps anything.

What calls itself an exit is one, too: a tool or a tracker of an extension has no say in how the
worker ends.

How long an activity took is written into its result here, where the request asks for it: a run that
replays learns it from there, and from no clock.

A local activity is held to its deadline here, too: the SDK's own timer for it (temporalio 1.35.0)
outlives an attempt that fails, and would end a later one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from temporalio import activity
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from triage.contracts.base import Contract
from triage.contracts.failures import FailureClass
from triage.contracts.payloads import Preview, RunContext
from triage.faults import Point, reach
from triage.storage.errors import StorageError

LOCAL_SECONDS: Final = 10.0
"""For one attempt of a local activity, which holds up a workflow task."""


UNNOTICED: Final = timedelta(seconds=2)
"""By so much a worker's clock may be ahead of the server's; more costs each wait a timer."""

_LIMIT: Final[ContextVar[asyncio.Timeout | None]] = ContextVar("limit", default=None)


@contextmanager
def clock_stopped() -> Iterator[None]:
    """Let no time of a local activity's attempt pass: for waiting that has a bound of its own."""
    limit = _LIMIT.get()
    end = None if limit is None else limit.when()
    if limit is None or end is None:
        yield
        return
    loop = asyncio.get_running_loop()
    left = end - loop.time()
    limit.reschedule(None)
    try:
        yield
    finally:
        limit.reschedule(loop.time() + left)


class FailureGuard(Interceptor):
    """Replaces every foreign exception of an activity by its type's name."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the SDK's name
        """See base class."""
        return _Guarded(next)


class _Guarded(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401 - the SDK's signature
        name = activity.info().activity_type
        reach(Point.ACTIVITY_BEGIN, name)
        try:
            return await self._translated(input)
        finally:
            reach(Point.ACTIVITY_END, name)

    async def _translated(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401 - likewise
        began = time.monotonic()
        try:
            async with asyncio.timeout(
                LOCAL_SECONDS if activity.info().is_local else None
            ) as limit:
                _LIMIT.set(limit)
                return _timed(input.args, await super().execute_activity(input), began)
        except TimeoutError:
            message = "it took too long" if limit.expired() else "the activity failed: TimeoutError"
            kind = FailureClass.TOOL_TIMEOUT.value if limit.expired() else "TimeoutError"
            raise ApplicationError(message, type=kind) from None
        except (FailureError, StorageError):
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, only its name goes on
            name = type(error).__name__
            raise ApplicationError(f"the activity failed: {name}", type=name) from None


def _timed(arguments: Sequence[Any], result: Any, began: float) -> Any:  # noqa: ANN401 - any activity's
    """Write into `result` what has passed since the activity was asked for, if that is wanted."""
    asked = bool(arguments) and getattr(arguments[0], "timed", None)
    bounded = isinstance(result, RunContext) and result.bounds_time
    if not ((asked or bounded) and isinstance(result, Contract)):
        return result
    info = activity.info()
    # The server set both or the worker both, so clocks that differ make no difference.
    before = max(0.0, (info.started_time - info.scheduled_time).total_seconds())
    took_ms = round(1_000 * (before + time.monotonic() - began))
    done = result.model_copy(update={"took_ms": took_ms})
    return done.model_copy(update={"late": True}) if _is_late(done) else done


def _is_late(shown: Contract) -> bool:
    """Whether more has passed since a preview was asked for than it took.

    So it is after a pause that was a timer, or where another worker began it anew.
    """
    if not isinstance(shown, Preview) or shown.at is None:
        return False
    since = datetime.now(UTC) - datetime.fromisoformat(shown.at)
    return since > timedelta(milliseconds=shown.took_ms or 0) + UNNOTICED
