"""The states of a write and the moves between them, in this one place (pure).

Why it exists: whether a label was written once or twice is decided by which moves are possible.
`dispatched` means that an effect may have happened. Nothing leads from there back to execution
except an answer: a definite "nothing was done", or a reading of the far end.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class OperationState(StrEnum):
    """Where one write stands."""

    RESERVED = "reserved"
    """Claimed by one attempt; no effect is possible yet."""
    DISPATCHED = "dispatched"
    """Approval consumed; an effect is possible from here on."""
    APPLIED = "applied"
    """The effect was seen by the attempt that made it."""
    FAILED = "failed"
    """The far end said that it did nothing and never will."""
    UNKNOWN = "unknown"
    """No answer: the effect may or may not have happened, or may still."""
    RECONCILED_APPLIED = "reconciled_applied"
    """A later reading found the effect."""
    RECONCILED_ABSENT = "reconciled_absent"
    """A reading after the quiet period found no effect."""
    ATTENTION = "attention"
    """Nobody but a person can settle it."""
    CANCELLED = "cancelled"
    """Given up while no effect was possible."""


_S = OperationState

MOVES: Final[Mapping[OperationState, frozenset[OperationState]]] = {
    # To itself: another attempt takes over after the lease. To attention: it was sent before.
    _S.RESERVED: frozenset({_S.RESERVED, _S.DISPATCHED, _S.CANCELLED, _S.ATTENTION}),
    # Back to reserved only on the far end's word that nothing was done (a rate limit).
    _S.DISPATCHED: frozenset({_S.APPLIED, _S.FAILED, _S.UNKNOWN, _S.RESERVED}),
    _S.UNKNOWN: frozenset({_S.RECONCILED_APPLIED, _S.RECONCILED_ABSENT, _S.ATTENTION}),
    # To itself: read again. A commit may come late, so even this may turn out applied.
    _S.RECONCILED_ABSENT: frozenset(
        {_S.RECONCILED_ABSENT, _S.RECONCILED_APPLIED, _S.RESERVED, _S.ATTENTION}
    ),
    _S.ATTENTION: frozenset({_S.RECONCILED_APPLIED, _S.RECONCILED_ABSENT}),
    # A newer version of the run, with an approval of its own, may try again.
    _S.CANCELLED: frozenset({_S.RESERVED}),
    _S.APPLIED: frozenset(),
    _S.FAILED: frozenset(),
    _S.RECONCILED_APPLIED: frozenset(),
}

SETTLED: Final = frozenset({_S.APPLIED, _S.FAILED, _S.RECONCILED_APPLIED, _S.CANCELLED})
"""States that answer a repeat without doing anything."""

IN_DOUBT: Final = frozenset({_S.DISPATCHED, _S.UNKNOWN, _S.RECONCILED_ABSENT, _S.ATTENTION})
"""States in which an effect may exist that no receipt tells of."""


def may_move(source: OperationState, target: OperationState) -> bool:
    """Whether a write in `source` may be moved to `target`."""
    return target in MOVES[source]
