"""`triage operations reconcile` reads the issue of a write that needs a person, and no more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Triage
from tests.cli.stored import in_store
from tests.unit.storage.samples import approval, operation
from triage.contracts.canonical import canonical_json
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.operations import OperationRecord, OperationRow, Reserved
from triage.storage.transitions import OperationState as S
from triage.trackers.local import LocalTracker

KEY = "op_1"
NO_WAIT = {"TRIAGE_QUIET_PERIOD_SECONDS": "0.001"}


def _row(issue: str) -> OperationRow:
    target = {"tracker": "local", "repository": "local", "issue": issue}
    return replace(operation(KEY), target=canonical_json(target).decode())


def _doubtful(
    *, labels: tuple[str, ...] = (), attention: bool = True, issue: str = "1"
) -> Callable[[Store], Awaitable[None]]:
    """A write without an answer, whose issue has `labels`."""

    async def make(store: Store) -> None:
        tracker, ledger, row = LocalTracker(store), Ledger(store), _row(issue)
        await tracker.seed_labels("local", ["bug"])
        await tracker.create_issue("local", title="It fails", body="Always", author="", number="1")
        claimed = await ledger.reserve(row, approval(row))
        assert isinstance(claimed, Reserved)
        assert await ledger.dispatch(KEY, claimed.epoch)
        if labels:
            await tracker.add_labels("local", "1", labels, by="bounded-triage", operation_key=KEY)
        assert await ledger.mark_unknown(KEY, claimed.epoch, "no answer")
        if attention:
            assert await ledger.attention(KEY, "the issue cannot be read", "operations")

    return make


def _record(home: Path) -> OperationRecord:
    found = in_store(home, lambda store: Ledger(store).get(KEY))
    assert found is not None
    assert [] == in_store(home, verify)
    return found


def test_a_write_that_is_there_gets_its_receipt(triage: Triage, tmp_path: Path) -> None:
    """Its labels are on the issue: it is settled, and nobody is asked any more."""
    in_store(tmp_path, _doubtful(labels=("bug",)))
    answer = triage("operations", "reconcile", "op-105@3", "--format", "json")
    expected = {"operation_key": KEY, "found": "present", "state": "reconciled_applied"}
    assert (0, expected) == (answer.status, answer.json())
    assert b"readback" in (_record(tmp_path).receipt or b"")
    assert [] == triage("operations", "--attention", "--format", "json").json()


def test_a_write_that_is_not_there_is_closed(triage: Triage, tmp_path: Path) -> None:
    """After the quiet period it is absent: nothing is sent, and the row says who looked."""
    in_store(tmp_path, _doubtful())
    answer = triage("operations", "reconcile", KEY, "--as", "ann", env=NO_WAIT)
    assert 0 == answer.status
    assert "did not happen" in answer.out
    record = _record(tmp_path)
    assert (S.RECONCILED_ABSENT, "ann", None) == (
        record.state,
        record.attention_owner,
        record.attention_at,
    )
    assert [] == triage("issues", "show", "1", "--format", "json").json()["labels"]
    again = triage("operations", "reconcile", KEY, env=NO_WAIT)
    assert (1, True) == (again.status, "it needs no person" in again.err)


@pytest.mark.parametrize("state", [S.FAILED, S.CANCELLED])
def test_a_write_that_did_not_happen_is_noted(triage: Triage, tmp_path: Path, state: S) -> None:
    """Of a write that failed, or was given up, a person only says to have looked at it."""

    async def make(store: Store) -> None:
        ledger, row = Ledger(store), _row("1")
        claimed = await ledger.reserve(row, approval(row))
        assert isinstance(claimed, Reserved)
        owner, why = "operations", "forbidden"
        if state is S.CANCELLED:
            assert await ledger.cancel(KEY, claimed.epoch, why, attention_owner=owner)
            return
        assert await ledger.dispatch(KEY, claimed.epoch)
        assert await ledger.settle(KEY, claimed.epoch, state, b"", why, attention_owner=owner)

    in_store(tmp_path, make)
    listed = triage("operations", "--attention").out
    assert ("forbidden" in listed, "operations" in listed) == (True, True)
    answer = triage("operations", "reconcile", KEY, "--as", "ann", "--format", "json")
    assert (0, {"operation_key": KEY, "found": None, "state": state.value}) == (
        answer.status,
        answer.json(),
    )
    record = _record(tmp_path)
    assert (state, "ann", None) == (record.state, record.attention_owner, record.attention_at)
    assert [] == triage("operations", "--attention", "--format", "json").json()


def test_inside_the_quiet_period_absence_is_not_recorded(triage: Triage, tmp_path: Path) -> None:
    """The time that is left is told, and the row stays as it was."""
    in_store(tmp_path, _doubtful())
    before = _record(tmp_path)
    answer = triage("operations", "reconcile", KEY)
    assert (1, "") == (answer.status, answer.out)
    seconds = [int(word) for word in answer.err.split() if word.isdigit()]
    assert [True] == [0 < left <= 120 for left in seconds]
    assert before == _record(tmp_path)


async def _nothing(store: Store) -> None:
    """Leave a ledger without any write."""


@pytest.mark.parametrize(
    ("prepare", "told"),
    [
        (None, "there is no operation op_1"),
        (_doubtful(attention=False), "op_1 is unknown: it needs no person"),
        (_doubtful(issue="404"), "the tracker has no such issue"),
    ],
    ids=["missing", "not-asked", "unreadable"],
)
def test_what_cannot_be_reconciled_is_told(
    triage: Triage,
    tmp_path: Path,
    prepare: Callable[[Store], Awaitable[None]] | None,
    told: str,
) -> None:
    """No such operation, one that needs nobody, or an issue that is gone: nothing is recorded."""
    in_store(tmp_path, prepare or _nothing)
    answer = triage("operations", "reconcile", KEY, env=NO_WAIT)
    assert (1, "") == (answer.status, answer.out)
    assert told in answer.err
