"""Any mixture of faults at the far end: the invariants of a write hold after every one."""

from __future__ import annotations

from collections import deque
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.activities.scripted_tracker import Add, Read
from tests.activities.writing import APPLIED, Writing
from triage.contracts.payloads import WriteOutcome
from triage.storage.transitions import OperationState

STEPS = st.lists(st.sampled_from(list(Add)).filter(lambda add: add is not Add.HANGS), max_size=5)
READS = st.lists(st.sampled_from([Read.OK, Read.CUT, Read.ERROR]), max_size=12)
PAUSES = st.integers(0, 6)
WINDOWS = st.sampled_from([None, 30, 90, 200, 600])
ALLOWED = {
    WriteOutcome.APPLIED: APPLIED,
    WriteOutcome.FAILED: {OperationState.FAILED, OperationState.CANCELLED},
    WriteOutcome.REFUSED: {OperationState.CANCELLED, OperationState.ATTENTION},
    WriteOutcome.UNKNOWN: {OperationState.ATTENTION},
    WriteOutcome.CONFLICT: set[OperationState](),
}


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(adds=STEPS, reads=READS, lands_after=PAUSES, window=WINDOWS)
async def test_a_write_happens_once_or_somebody_is_told(
    writing: Writing, adds: list[Add], reads: list[Read], lands_after: int, window: int | None
) -> None:
    """At most one commit, an approval before it, a receipt that is true, and no write forgotten."""
    tracker = writing.tracker
    tracker.labels.clear()
    tracker.commits.clear()
    tracker.adds, tracker.reads = deque(adds), deque(reads)
    tracker.late.clear()
    pauses = 0

    def land(_: timedelta) -> None:
        nonlocal pauses
        pauses += 1
        if pauses > lands_after:
            tracker.land()

    request = writing.request(expires_in=timedelta(seconds=window) if window else None)
    result = await writing.carry(request, meanwhile=land)
    record = await writing.check(request)
    assert record.state in ALLOWED[result.outcome]
    if record.state in APPLIED:
        assert {"bug"} == tracker.labels
    # Whoever asks again is told the same, and nothing more is sent.
    calls, commits = tracker.calls, list(tracker.commits)
    again = await writing.carry(request)
    assert (result.outcome is WriteOutcome.APPLIED) == (again.outcome is WriteOutcome.APPLIED)
    assert (calls, commits) == (tracker.calls, tracker.commits)
