"""The table of moves says what may happen to a write, and what may never."""

from __future__ import annotations

from itertools import product

import pytest

from triage.storage.transitions import (
    IN_DOUBT,
    MOVES,
    SETTLED,
    OperationState,
    may_move,
)

S = OperationState
LEGAL = {
    (S.RESERVED, S.RESERVED),
    (S.RESERVED, S.DISPATCHED),
    (S.RESERVED, S.CANCELLED),
    (S.RESERVED, S.ATTENTION),
    (S.DISPATCHED, S.APPLIED),
    (S.DISPATCHED, S.FAILED),
    (S.DISPATCHED, S.UNKNOWN),
    (S.DISPATCHED, S.RESERVED),
    (S.UNKNOWN, S.RECONCILED_APPLIED),
    (S.UNKNOWN, S.RECONCILED_ABSENT),
    (S.UNKNOWN, S.ATTENTION),
    (S.RECONCILED_ABSENT, S.RECONCILED_ABSENT),
    (S.RECONCILED_ABSENT, S.RECONCILED_APPLIED),
    (S.RECONCILED_ABSENT, S.RESERVED),
    (S.RECONCILED_ABSENT, S.ATTENTION),
    (S.ATTENTION, S.RECONCILED_APPLIED),
    (S.ATTENTION, S.RECONCILED_ABSENT),
    (S.CANCELLED, S.RESERVED),
}


@pytest.mark.parametrize(("source", "target"), list(product(S, S)))
def test_exactly_the_listed_moves_are_legal(source: S, target: S) -> None:
    """A move is legal if it is in the list above, and not otherwise."""
    assert ((source, target) in LEGAL) is may_move(source, target)


def test_an_unknown_write_runs_again_only_through_a_reading() -> None:
    """From unknown, the only way back to execution leads over reconciled_absent."""
    assert {S.RESERVED, S.DISPATCHED, S.RECONCILED_ABSENT, S.CANCELLED} == _before(S.RESERVED)
    assert {S.RESERVED} == _before(S.DISPATCHED)


def _before(target: S) -> set[S]:
    return {source for source in S if may_move(source, target)}


def test_every_state_is_one_of_three_kinds() -> None:
    """A state answers a repeat, is in doubt, or is the harmless reserved."""
    assert set(S) == SETTLED | IN_DOUBT | {S.RESERVED}
    assert set() == SETTLED & IN_DOUBT
    assert set(S) == set(MOVES)
