"""The checker finds nothing after honest work, and finds what is wrong in a real store."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, update

from tests.fakes.commit_log import read_log
from tests.fakes.control import TrackerControl
from tests.fakes.faults import dropped_after, late, without_effect
from tests.fakes.invariants import Expectations, check_invariants
from tests.unit.fakes.scene import ISSUE_PATH, NUMBER, REPOSITORY, call
from tests.unit.fakes.writes import Writes, key_of, write_request
from triage.storage.audit import heads
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.retention import purge_settled
from triage.storage.schema import audit, audit_heads, operations

UNDER_WAY = Expectations(settled=False)


@pytest.fixture
def writes(store: Store, control: TrackerControl) -> Writes:
    """A ledger that has not to wait, before the fake tracker."""
    return Writes(Ledger(store, quiet_period_seconds=0), control.client())


@pytest.fixture
def commits(tmp_path: Path, control: TrackerControl) -> Path:
    """The tracker's commit log."""
    return tmp_path / "commits.jsonl"


async def test_honest_work_breaks_nothing(
    store: Store, control: TrackerControl, writes: Writes, commits: Path
) -> None:
    """Written, read back, refused, done by others, repeated by people and purged: all is well."""
    await writes.applied(write_request("bug", "component:api"))
    await control.remove_label(REPOSITORY, NUMBER, "bug")
    await control.plan(dropped_after())
    await writes.read_back(write_request("good first issue", operation_id="op-2"))
    await writes.refused(write_request("bug", operation_id="op-3"))
    await control.drop_label(REPOSITORY, "bug")
    kept = await heads(store)
    expected = Expectations(heads=kept, issues={(REPOSITORY, NUMBER)})
    assert [] == await check_invariants(store, commits, expected)
    assert [] == await check_invariants(store, read_log(commits), expected)
    async with store.read() as connection:
        now = await store.now(connection)
    assert 2 == await purge_settled(store, now + timedelta(days=1))
    assert [] == await check_invariants(store, commits, expected)


async def test_work_under_way_breaks_nothing_yet(
    store: Store, control: TrackerControl, writes: Writes, commits: Path
) -> None:
    """A write whose outcome is open is fine until it has had its time, and then it is not."""
    request = write_request("bug")
    await writes.dispatched(request)
    await control.plan(dropped_after())
    await writes.send(request)
    assert [] == await check_invariants(store, commits, UNDER_WAY)
    stuck = [f"I4: {key_of(request)} is still dispatched"]
    assert stuck == await check_invariants(store, commits)


async def test_a_false_failure_is_found(
    store: Store, control: TrackerControl, writes: Writes, commits: Path
) -> None:
    """A write that the ledger calls failed and the tracker carried out breaks I1."""
    await control.plan(late(0))
    request = write_request("bug")
    key = await writes.refused(request)
    before = await control.log()
    await writes.send(request)
    await control.log(len(before), wait=True)
    [breach] = await check_invariants(store, commits)
    assert f"I1: {key} is failed, and 'bug' on {REPOSITORY}#{NUMBER} (line 5) was committed" == (
        breach
    )


async def test_a_false_success_is_found(
    store: Store, control: TrackerControl, writes: Writes, commits: Path
) -> None:
    """A receipt for labels that never came to the issue breaks I5."""
    await control.plan(without_effect())
    await writes.read_back(write_request("bug"))
    found = await check_invariants(store, commits)
    assert ["I5"] == [breach[:2] for breach in found]
    assert "never had its labels" in found[0]


async def test_a_second_write_is_found(
    store: Store, control: TrackerControl, writes: Writes, commits: Path
) -> None:
    """A label that a stale request puts on again, after a person took it off, breaks I1."""
    request = write_request("bug")
    await writes.applied(request)
    await control.remove_label(REPOSITORY, NUMBER, "bug")
    labels = {"labels": ["bug"]}
    await call(control, "POST", f"{ISSUE_PATH}/labels", labels, operation=key_of(request))
    breaches = await check_invariants(store, commits)
    assert {"I1"} == {breach[:2] for breach in breaches}
    assert any("2 times" in breach for breach in breaches)


async def test_a_forged_ledger_is_found(store: Store, writes: Writes, commits: Path) -> None:
    """A row that was changed behind the trail's back, or an entry that is gone, breaks I7."""
    request = write_request("bug")
    await writes.dispatched(request)
    async with store.write() as connection:
        await connection.execute(update(operations).values(state="failed"))
    # By the checker of these tests, and by the one that `triage audit verify` runs.
    assert ["I7"] * 2 == [breach[:2] for breach in await check_invariants(store, commits)]


async def test_a_cut_trail_is_found_by_its_head(
    store: Store, writes: Writes, commits: Path
) -> None:
    """The end of the trail cannot be taken off without the head that was kept elsewhere telling."""
    await writes.refused(write_request("bug"))
    [head] = await heads(store)
    async with store.write() as connection:
        await connection.execute(delete(audit).where(audit.c.seq == head.seq))
        last = (await connection.execute(audit.select().order_by(audit.c.seq.desc()))).mappings()
        row = last.first()
        assert row is not None
        await connection.execute(update(audit_heads).values(seq=row["seq"], hash=row["hash"]))
    assert [] == await check_invariants(store, commits)
    found = await check_invariants(store, commits, Expectations(heads=[head]))
    assert [f"I7: entry {head.seq - 1} of an audit chain is truncated"] == found
