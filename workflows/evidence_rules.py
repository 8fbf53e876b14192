"""What may happen next in an investigation: the permission checks of Pattern 01. Pure."""

from __future__ import annotations

from collections.abc import Collection

from triage.contracts.incident import LoopDecision, LoopStatus

READ = "read"
FINISH = "finish"


def stop_reason(
    decision: LoopDecision | None, allowed: Collection[str], observed: Collection[str]
) -> LoopStatus | None:
    """Return how the loop ends on this decision, or None if it is a permitted read.

    Args:
        decision: the adapter's decision; None when it was not one.
        allowed: the references that may be read.
        observed: the references that were read already.
    """
    if decision is None:
        return LoopStatus.INVALID
    if decision.action == FINISH:
        return LoopStatus.COMPLETE if observed else LoopStatus.UNSUPPORTED
    if decision.action != READ or decision.argument not in allowed:
        return LoopStatus.DENIED
    return LoopStatus.REPEATED if decision.argument in observed else None
