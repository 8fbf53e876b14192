"""What a claim on an existing row gets, without a database."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.storage.samples import NOW, RECEIPT, operation, record
from triage.storage.judgement import judge, redispatch
from triage.storage.operations import (
    Busy,
    Conflict,
    ConflictCode,
    InDoubt,
    OperationRecord,
    Redispatch,
    Reservation,
    Reserved,
    Settled,
    Timings,
)
from triage.storage.transitions import OperationState

S = OperationState
TIMINGS = Timings(lease_seconds=60, quiet_period_seconds=120, max_redispatch=2)


def _judge(found: OperationRecord, version: int = 3, owner: str = "attempt-2") -> Reservation:
    return judge(found, operation(version=version), owner, NOW, TIMINGS)


@pytest.mark.parametrize("state", list(S))
def test_another_digest_is_a_conflict_in_every_state(state: S) -> None:
    """A key that stands for something else is never executed, settled or not."""
    other = operation(labels=("bug", "security"))
    expected = Conflict(code=ConflictCode.DIGEST_MISMATCH, state=state)
    assert expected == judge(record(state), other, "attempt-2", NOW, TIMINGS)


@pytest.mark.parametrize("state", [S.APPLIED, S.FAILED, S.RECONCILED_APPLIED, S.CANCELLED])
def test_a_settled_write_answers_its_receipt(state: S) -> None:
    """A repeat of a write that is over gets the stored receipt."""
    assert Settled(state=state, receipt=RECEIPT, receipt_digest=None, owner="attempt-1") == _judge(
        record(state)
    )


@pytest.mark.parametrize("version", [2, 4])
def test_a_receipt_is_the_answer_at_any_version(version: int) -> None:
    """The same key and digest answer the receipt, whatever version asks."""
    answer = _judge(record(S.APPLIED), version=version)
    assert (
        Settled(state=S.APPLIED, receipt=RECEIPT, receipt_digest=None, owner="attempt-1") == answer
    )


def test_a_cancelled_write_may_be_tried_by_a_newer_version() -> None:
    """What had no effect may be approved and tried anew, under a new epoch."""
    expected = Reserved(epoch=2, lease_until=NOW + timedelta(seconds=60), taken_over=True)
    assert expected == _judge(record(S.CANCELLED), version=4)


def test_a_live_lease_keeps_others_out() -> None:
    """While one attempt holds the lease, another is told how long to wait."""
    held = record(S.RESERVED, lease_until=NOW + timedelta(seconds=10))
    assert Busy(retry_after_seconds=10.0) == _judge(held)


def test_the_holder_finds_its_own_claim_again() -> None:
    """An attempt whose commit was cut asks again and gets the epoch that it has."""
    until = NOW + timedelta(seconds=10)
    held = record(S.RESERVED, lease_until=until)
    assert Reserved(epoch=1, lease_until=until) == _judge(held, owner="attempt-1")


def test_a_lease_that_ended_is_taken_over() -> None:
    """A reserved write had no effect, so time alone may hand it on, under a new epoch."""
    held = record(S.RESERVED, lease_until=NOW)
    expected = Reserved(epoch=2, lease_until=NOW + timedelta(seconds=60), taken_over=True)
    assert expected == _judge(held)


def test_the_far_ends_pause_is_kept() -> None:
    """A write that the far end put off is busy until then, lease or no lease."""
    held = record(S.RESERVED, not_before=NOW + timedelta(seconds=30))
    assert Busy(retry_after_seconds=30.0) == _judge(held)


def test_an_older_version_takes_nothing_over() -> None:
    """A late attempt of an older version never gets the write of a newer one."""
    expected = Conflict(code=ConflictCode.STALE_VERSION, state=S.RESERVED)
    assert expected == _judge(record(S.RESERVED), version=2)
    absent = Conflict(code=ConflictCode.STALE_VERSION, state=S.RECONCILED_ABSENT)
    assert absent == _judge(record(S.RECONCILED_ABSENT), version=2)


@pytest.mark.parametrize("state", [S.DISPATCHED, S.UNKNOWN, S.ATTENTION])
def test_time_alone_never_makes_a_write_executable(state: S) -> None:
    """However old it is, a write that may have happened has to be read back first."""
    found = record(state)
    expected = InDoubt(
        state=state,
        epoch=1,
        dispatched_at=NOW - timedelta(days=1),
        quiet_for_seconds=0.0,
        exhausted=False,
    )
    assert expected == _judge(found)


def test_an_absent_write_is_sent_again_after_the_quiet_period() -> None:
    """A fresh reading, made after the quiet period, hands the write on under a new epoch."""
    lease = NOW + timedelta(seconds=60)
    expected = Reserved(epoch=2, lease_until=lease, taken_over=True, dispatches=1)
    assert expected == _judge(record(S.RECONCILED_ABSENT))
    assert Redispatch(allowed=True) == redispatch(record(S.RECONCILED_ABSENT), NOW, TIMINGS)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"dispatched_at": NOW - timedelta(seconds=119)},
            Redispatch(allowed=False, read_again=True, retry_after_seconds=1.0),
        ),
        (
            {"read_back_at": NOW - timedelta(seconds=61)},
            Redispatch(allowed=False, read_again=True),
        ),
        ({"read_back_at": None}, Redispatch(allowed=False, read_again=True)),
        ({"dispatches": 3}, Redispatch(allowed=False, exhausted=True)),
    ],
    ids=["inside the quiet period", "stale reading", "no reading", "sent too often"],
)
def test_an_absent_write_is_not_sent_again_otherwise(
    changes: dict[str, object], expected: Redispatch
) -> None:
    """Quiet period, a fresh reading and the number of times all have to allow it."""
    found = record(S.RECONCILED_ABSENT, **changes)
    assert expected == redispatch(found, NOW, TIMINGS)
    assert isinstance(_judge(found), InDoubt)
