"""An undo is a write of its own: once, through the ledger, of exactly what was shown."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.commit_log import Action
from tests.fakes.faults import fails_after, rate_limited, refused
from tests.unit.storage.samples import approval, operation
from tests.unit.trackers.far_ends import (
    NUMBER,
    TOKEN,
    FarEnd,
    GitHubEnd,
    LocalEnd,
    github_end,
    issue_of,
)
from triage.contracts.canonical import canonical_json
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.leftovers import Closing
from triage.storage.migrate import upgrade
from triage.storage.operations import MoveCode, OperationRecord, OperationRow, Reserved
from triage.storage.switches import Switches
from triage.storage.transitions import OperationState as S
from triage.trackers.abilities import Removal
from triage.trackers.base import Tracker
from triage.trackers.read_back import HALF_UNDONE, ReadBack
from triage.trackers.undo import Ending, Undo, Undone, undo_key, undo_row
from triage.trackers.undo_plan import CannotUndo, Fate, UndoPlan, own_write, undoing_tracker
from triage.trackers.undo_reading import PARTLY

DELETE: dict[str, Any] = {"method": "DELETE", "path": r"/labels/[^/]+$"}


@dataclass
class Bench:
    """A far end, a ledger, and a write that put labels on."""

    end: FarEnd
    store: Store
    trackers: dict[str, Tracker]
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        """Open the ledger, which waits for nothing."""
        self.ledger = Ledger(self.store, quiet_period_seconds=0)

    @property
    def undo(self) -> Undo:
        """What undoes writes."""
        return Undo(self.ledger, Switches(self.store), self.trackers)

    def row(self, *labels: str, key: str = "op_1") -> OperationRow:
        """A write on the issue."""
        [name] = self.trackers
        target = {"tracker": name, "repository": self.end.repository, "issue": NUMBER}
        return operation(key, labels, target=canonical_json(target).decode())

    async def write(self, *labels: str) -> OperationRecord:
        """Carry a write through, as a run does."""
        row = self.row(*(labels or ("bug", "component:api")))
        claimed = await self.ledger.reserve(row, approval(row))
        assert isinstance(claimed, Reserved)
        assert await self.ledger.dispatch(row.operation_key, claimed.epoch)
        await self.end.tracker.add_labels(
            self.end.repository,
            NUMBER,
            row.labels,
            by="bounded-triage",
            operation_key=row.operation_key,
        )
        assert await self.ledger.settle(row.operation_key, claimed.epoch, S.APPLIED, b"{}")
        return await self.record(row.operation_key)

    async def record(self, key: str) -> OperationRecord:
        """A row of the ledger."""
        found = await self.ledger.get(key)
        assert found is not None
        return found

    async def take_back(self, plan: UndoPlan, attempt: int = 1) -> Undone:
        """Undo what was shown, with an approval."""
        row = undo_row(plan, attempt)
        return await self.undo.carry_out(plan, row, approval(row))

    async def labels(self) -> set[str]:
        """The labels on the issue."""
        return set((await issue_of(self.end)).labels)


@pytest.fixture(scope="module")
async def one_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database, to be copied."""
    path = tmp_path_factory.mktemp("undo") / "triage.db"
    await upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
async def mine(one_store: Path, tmp_path: Path) -> AsyncIterator[Store]:
    """A store of this test alone."""
    path = tmp_path / "triage.db"
    shutil.copyfile(one_store, path)
    opened = await Store.open(f"sqlite:///{path}")
    yield opened
    await opened.close()


@pytest.fixture(params=["local", "github"])
async def bench(
    request: pytest.FixtureRequest, mine: Store, tmp_path: Path
) -> AsyncIterator[Bench]:
    """Each tracker in turn."""
    if request.param == "local":
        end = LocalEnd(mine)
        await end.open()
        yield Bench(end, mine, {"local": end.tracker})
    else:
        async with github_end(tmp_path) as far:
            yield Bench(far, mine, {"github": far.tracker})


@pytest.fixture
async def far(mine: Store, tmp_path: Path) -> AsyncIterator[tuple[Bench, GitHubEnd]]:
    """GitHub, and the test's hand on it."""
    async with github_end(tmp_path) as end:
        yield Bench(end, mine, {"github": end.tracker}), end


async def test_a_write_is_undone_once(bench: Bench) -> None:
    """Its labels go, those of people stay, and a repeat answers the first receipt."""
    await bench.end.adds("good first issue")
    record = await bench.write()
    plan = await bench.undo.plan(record)
    assert ("bug", "component:api") == plan.taking_off
    undone = await bench.take_back(plan)
    assert (Ending.DONE, {"good first issue"}) == (undone.ending, await bench.labels())
    receipt = json.loads(undone.receipt or b"")
    assert ("taken_off", ["bug", "component:api"], "op_1", ["good first issue"]) == tuple(
        receipt[name] for name in ("how", "labels", "undoes", "after")
    )
    again = await bench.take_back(plan)
    assert (Ending.DONE_BEFORE, undone.receipt) == (again.ending, again.receipt)
    standing = (await bench.undo.latest(record))[1]
    assert standing is not None
    assert (S.APPLIED, "undo_labels") == (standing.state, standing.operation_type)
    assert [] == await verify(bench.store)


async def test_what_is_not_ours_any_more_is_left(bench: Bench) -> None:
    """Put on by a person before or since, or gone: each is told, and the rest is taken off."""
    await bench.end.adds("good first issue")
    record = await bench.write("bug", "component:api", "good first issue")
    await bench.end.removes("bug")
    await bench.end.adds("bug")
    plan = await bench.undo.plan(record)
    fates = {
        "bug": Fate.NOT_OURS,
        "component:api": Fate.TAKE_OFF,
        "good first issue": Fate.NOT_OURS,
    }
    assert fates == plan.fates
    assert Ending.DONE is (await bench.take_back(plan)).ending
    assert {"bug", "good first issue"} == await bench.labels()
    assert Fate.GONE is (await bench.undo.plan(record)).fates["component:api"]


async def test_a_change_after_it_was_shown_is_a_conflict(bench: Bench) -> None:
    """Nothing is taken off, and after another look it may be tried again."""
    record = await bench.write()
    plan = await bench.undo.plan(record)
    await bench.end.removes("bug")
    changed = await bench.take_back(plan)
    assert (Ending.CHANGED, {"component:api"}) == (changed.ending, await bench.labels())
    attempt, standing = await bench.undo.latest(record)
    assert (2, None) == (attempt, standing)
    assert Ending.DONE is (await bench.take_back(await bench.undo.plan(record), attempt)).ending
    assert set() == await bench.labels()


async def test_writes_that_are_stopped_stop_an_undo(bench: Bench) -> None:
    """It is a write like any other."""
    record = await bench.write()
    plan = await bench.undo.plan(record)
    await Switches(bench.store).stop("ann", "enough")
    stopped = await bench.take_back(plan)
    assert (Ending.REFUSED, "writes are stopped") == (stopped.ending, stopped.detail)
    assert {"bug", "component:api"} == await bench.labels()
    assert S.CANCELLED is (await bench.record(undo_key(record, 1))).state


async def test_only_a_write_that_happened_is_undone(bench: Bench) -> None:
    """Not one that failed, not an undo, and not one whose tracker is not here."""
    record = await bench.write("bug")
    for other in (
        replace(record, state=S.FAILED),
        replace(record, operation_type="undo_labels"),
        replace(record, target=record.target.replace('"tracker":"', '"tracker":"no-')),
    ):
        with pytest.raises(CannotUndo):
            await bench.undo.plan(other)


@pytest.mark.parametrize("fault", [rate_limited("9", **DELETE), refused(403, **DELETE)])
async def test_a_definite_no_leaves_nothing_behind(
    far: tuple[Bench, GitHubEnd],
    fault: Any,  # noqa: ANN401 - a fault
) -> None:
    """Nothing was taken off, so the same may be tried anew."""
    bench, end = far
    record = await bench.write("bug")
    await end.control.plan(fault)
    assert Ending.REFUSED is (await bench.take_back(await bench.undo.plan(record))).ending
    assert S.CANCELLED is (await bench.record(undo_key(record, 1))).state
    await end.control.plan()
    again = await bench.take_back(await bench.undo.plan(record), 2)
    assert (Ending.DONE, set()) == (again.ending, await bench.labels())


async def test_an_undo_without_an_answer_is_settled_by_reading(
    far: tuple[Bench, GitHubEnd],
) -> None:
    """It is never called failed: what the issue shows says what became of it."""
    bench, end = far
    record = await bench.write("bug")
    await end.control.plan(fails_after(**DELETE))
    assert Ending.UNKNOWN is (await bench.take_back(await bench.undo.plan(record))).ending
    row = await bench.record(undo_key(record, 1))
    assert S.UNKNOWN is row.state
    closing = Closing(reason="", owner="", attention=True)
    assert await ReadBack(bench.store, bench.ledger, bench.trackers).settle(row, closing)
    settled = await bench.record(row.operation_key)
    assert S.RECONCILED_APPLIED is settled.state
    assert "op_1" == json.loads(settled.receipt or b"")["undoes"]


async def test_an_undo_that_did_not_happen_is_found_absent(far: tuple[Bench, GitHubEnd]) -> None:
    """A label that is still there is no effect of an undo."""
    bench, end = far
    record = await bench.write("bug")
    await end.control.plan(replace(fails_after(**DELETE), takes_effect=False))
    assert Ending.UNKNOWN is (await bench.take_back(await bench.undo.plan(record))).ending
    row = await bench.record(undo_key(record, 1))
    closing = Closing(reason="", owner="", attention=True)
    moved = await ReadBack(bench.store, bench.ledger, bench.trackers).settle(row, closing)
    assert S.RECONCILED_ABSENT is moved.state
    assert (2, None) == await bench.undo.latest(record)


async def test_half_an_undo_needs_a_person(far: tuple[Bench, GitHubEnd]) -> None:
    """One label is off and the other one cannot be: that is neither done nor nothing."""
    bench, end = far
    record = await bench.write()
    await end.control.plan(replace(refused(403, **DELETE), skip=1))
    assert Ending.UNKNOWN is (await bench.take_back(await bench.undo.plan(record))).ending
    row = await bench.record(undo_key(record, 1))
    assert (S.ATTENTION, "operations") == (row.state, row.attention_owner)
    assert {"component:api"} == await bench.labels()


async def test_a_later_act_of_our_account_is_not_the_write_s(far: tuple[Bench, GitHubEnd]) -> None:
    """A person whose token we use puts it on again much later: the times tell them apart."""
    bench, end = far
    record = await bench.write("bug")
    await end.removes("bug")
    await end.control.act(Action.LABELED, end.repository, NUMBER, label="bug", by=TOKEN)
    hour = replace(record, updated_at=record.updated_at.replace(year=2020))
    assert Fate.NOT_OURS is (await bench.undo.plan(hour)).fates["bug"]


async def _cut_short(bench: Bench, *taken: str) -> OperationRecord:
    """Leave an undo of two labels that was killed after it had taken some of them off."""
    record = await bench.write()
    row = undo_row(await bench.undo.plan(record), 1)
    claimed = await bench.ledger.reserve(row, approval(row))
    assert isinstance(claimed, Reserved)
    key = row.operation_key
    assert await bench.ledger.dispatch(key, claimed.epoch)
    for label in taken:
        own = own_write(record)
        tracker = undoing_tracker(record, bench.trackers)
        done = await tracker.remove_own_label(
            bench.end.repository, NUMBER, label, own, operation_key=key
        )
        assert Removal.REMOVED is done
    assert await bench.ledger.mark_unknown(key, claimed.epoch)
    return await bench.record(key)


async def _settled(bench: Bench, row: OperationRecord, *, by_person: bool) -> OperationRecord:
    closing = Closing(reason="read", owner="ann", attention=not by_person)
    assert await ReadBack(bench.store, bench.ledger, bench.trackers).settle(row, closing)
    assert [] == await verify(bench.store)
    return await bench.record(row.operation_key)


async def test_an_undo_cut_short_is_never_absent(bench: Bench) -> None:
    """A worker asks a person, who ends it as done in part; the rest may then be undone, too."""
    row = await _cut_short(bench, "bug")
    asked = await _settled(bench, row, by_person=False)
    assert (S.ATTENTION, HALF_UNDONE) == (asked.state, asked.reason)
    ended = await _settled(bench, asked, by_person=True)
    receipt = json.loads(ended.receipt or b"")
    assert (S.RECONCILED_APPLIED, PARTLY, ["bug"]) == (
        ended.state,
        receipt["how"],
        receipt["labels"],
    )
    record = await bench.record("op_1")
    assert (2, None) == await bench.undo.latest(record)
    assert Ending.DONE is (await bench.take_back(await bench.undo.plan(record), 2)).ending
    assert set() == await bench.labels()


async def test_an_undo_is_not_credited_with_what_a_person_took_off(bench: Bench) -> None:
    """Its receipt names what its own events took off; without any it did nothing."""
    row = await _cut_short(bench, "bug")
    await bench.end.removes("component:api")
    ended = await _settled(bench, row, by_person=True)
    receipt = json.loads(ended.receipt or b"")
    assert ("taken_off", ["bug"]) == (receipt["how"], receipt["labels"])


async def test_an_undo_that_took_nothing_off_is_absent_whoever_did(bench: Bench) -> None:
    """Labels that a person took off meanwhile are no effect of it."""
    row = await _cut_short(bench)
    await bench.end.removes("bug")
    await bench.end.removes("component:api")
    assert S.RECONCILED_ABSENT is (await _settled(bench, row, by_person=True)).state


async def test_half_an_undo_says_nothing_before_the_quiet_period_is_over(bench: Bench) -> None:
    """A request that is under way may still take the other label off."""
    row = await _cut_short(bench, "bug")
    patient = Ledger(bench.store, quiet_period_seconds=60)
    closing = Closing(reason="read", owner="ann", attention=False)
    moved = await ReadBack(bench.store, patient, bench.trackers).settle(row, closing)
    assert (MoveCode.TOO_EARLY, row) == (moved.code, await bench.record(row.operation_key))


async def test_undos_that_did_nothing_never_use_themselves_up(mine: Store) -> None:
    """However many were given up, there is one more."""
    end = LocalEnd(mine)
    await end.open()
    bench = Bench(end, mine, {"local": end.tracker})
    record = await bench.write("bug")
    plan = await bench.undo.plan(record)
    for attempt in range(1, 61):
        row = undo_row(plan, attempt)
        claimed = await bench.ledger.reserve(row, approval(row))
        assert isinstance(claimed, Reserved)
        assert await bench.ledger.cancel(row.operation_key, claimed.epoch)
    attempt, standing = await bench.undo.latest(record)
    assert (61, None) == (attempt, standing)
    assert Ending.DONE is (await bench.take_back(plan, attempt)).ending
