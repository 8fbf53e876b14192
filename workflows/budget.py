"""Budgets: what a run may spend, checked before each step.

Pure. A budget that is spent never lets the next step begin; the run ends in review with the
evidence that it has.
"""

from __future__ import annotations

from dataclasses import dataclass

from triage.contracts.options import BudgetLimits
from workflows.state import RunState


@dataclass(frozen=True, slots=True)
class Spent:
    """What has been used; `seconds` leave out the wait for a person."""

    tokens: int
    cost_micros: int
    seconds: int
    evidence_bytes: int
    model_attempts: int = 0
    tool_attempts: int = 0


def spent(state: RunState) -> Spent:
    """Return what a run has used so far, by its state."""
    return Spent(
        tokens=state.tokens,
        cost_micros=state.cost_micros,
        seconds=state.seconds,
        evidence_bytes=state.evidence_bytes,
        model_attempts=state.model_attempts,
        tool_attempts=state.tool_attempts,
    )


def exhausted(spent: Spent, limits: BudgetLimits) -> str | None:
    """Return the name of the first budget that is spent, or None.

    A limit is spent when nothing is left of it, so a limit of zero permits no step at all.
    """
    pairs = (
        ("tokens", spent.tokens, limits.tokens),
        ("cost_micros", spent.cost_micros, limits.cost_micros),
        ("seconds", spent.seconds, limits.seconds),
        ("evidence_bytes", spent.evidence_bytes, limits.evidence_bytes),
        ("model_attempts", spent.model_attempts, limits.model_attempts),
        ("tool_attempts", spent.tool_attempts, limits.tool_attempts),
    )
    return next((name for name, used, limit in pairs if limit is not None and used >= limit), None)


def left(limit: int | None, used: int) -> int | None:
    """Return what is left of a limit; None where there is none."""
    return None if limit is None else max(0, limit - used)
