"""Asking the model adapter for one decision.

The activity loads what the adapter may see, asks once and returns plain data. It decides
nothing: the workflow parses the answer.
"""

from __future__ import annotations

from temporalio import activity

from activities.asking import Asking, asked
from activities.services import Services
from triage.contracts.names import ACTIVITY_DECIDE
from triage.contracts.payloads import DecideOutcome, DecideRequest, DecideResult


class DecideActivities:
    """The activity that costs money."""

    def __init__(self, services: Services) -> None:
        self._asking = Asking(services)

    @activity.defn(name=ACTIVITY_DECIDE)
    async def decide(self, request: DecideRequest) -> DecideResult:
        """Return the adapter's proposal, or the named outcome that stands in for one."""
        attempt = activity.info().attempt
        if request.attempts_left is not None and attempt > request.attempts_left:
            # The attempts before were lost with their workers, and each may have been a call.
            detail = "the budget of model_attempts is spent on calls that were lost"
            result = DecideResult(outcome=DecideOutcome.EXHAUSTED, detail=detail)
        else:
            result = await self._asking.answer(request)
        return _with_what_was_asked(result, request)


def _with_what_was_asked(result: DecideResult, request: DecideRequest) -> DecideResult:
    """Add what a history would not hold else: later attempts, and the question of a local call."""
    info, more = activity.info(), dict[str, object]()
    if info.attempt > 1:
        more["attempts"] = info.attempt
    if info.is_local:
        more["asked"] = asked(request)
    return result.model_copy(update=more) if more else result
