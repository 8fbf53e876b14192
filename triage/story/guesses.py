"""Tells a route that was found from one that a model merely had to name.

Why it exists: a decision to hand over to a person names a route, too, even where nothing speaks for
one. Where it cites no evidence either, whoever reads it is told what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from triage.contracts.response import Status
from triage.policy.security import SECURITY_ROUTE

GUESS: Final = " (the model's guess)"


def guess_note(
    status: str, failure: str | None, route: str | None, evidence_ids: Sequence[str]
) -> str:
    """Return what to put beside a response's route: that it is a guess; empty if it is none.

    A run that ended in review without a failure was handed over by its model. That an issue may
    concern security is no guess: it raises a run to a person.
    """
    is_handed_over = status == Status.REVIEW_REQUIRED and not failure and not evidence_ids
    return GUESS if is_handed_over and route and route != SECURITY_ROUTE else ""
