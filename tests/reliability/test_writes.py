"""Writes that two workers want, whose database fails at the worst moment, or whose run is ended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.services import Services
from activities.sweeper import Outcome, Sweeper
from tests.activities.conftest import services_on
from tests.activities.scripted_tracker import Commit, ScriptedTracker
from tests.activities.writing import Writing
from tests.reliability.commands import Shell
from tests.reliability.far_end import with_tracker
from tests.reliability.outage import possible_outage
from tests.still_store import HastyStore
from tests.unit.storage.test_ledger_races import race
from tests.workflow.decisions import OPERATION, final, label
from tests.workflow.gate import Gate
from tests.workflow.runs import Run, eventually
from tests.workflow.world import World, altered_world, opened_services
from triage.contracts.names import TASK_QUEUE
from triage.contracts.payloads import WriteOutcome
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.errors import StorageUnavailable
from triage.storage.ledger import Ledger
from triage.storage.operations import Moved, OperationRecord
from triage.storage.transitions import OperationState
from triage.trackers.base import LabelsAdded

S = OperationState
ROUNDS = 1_000
OUTAGE_SECONDS = 0.4
"""How long a transaction waits for a file that is locked, before it gives up."""


@pytest.mark.long
async def test_fault_10_two_workers_race_a_thousand_times(store: Store, store_url: str) -> None:
    """Two processes claim and dispatch the same 1,000 writes: one winner each time."""
    await race(store, store_url, ROUNDS)


@dataclass
class Interrupted(ScriptedTracker):
    """A tracker after whose answer something happens."""

    after: list[Callable[[], None]] = field(default_factory=list)

    async def add_labels(
        self,
        repository: str,
        number: str,
        labels: Sequence[str],
        *,
        by: str,
        operation_key: str,
    ) -> LabelsAdded:
        """See `ScriptedTracker.add_labels`; then do what was planned."""
        added = await super().add_labels(
            repository, number, labels, by=by, operation_key=operation_key
        )
        for happens in self.after:
            happens()
        return added


@asynccontextmanager
async def _impatient(url: str, tracker: ScriptedTracker) -> AsyncIterator[Writing]:
    """Open the store so that it gives up soon."""
    store = await HastyStore.open(url, transaction_seconds=OUTAGE_SECONDS)
    try:
        yield Writing(tracker=tracker, services=services_on(store, tracker), store=store)
    finally:
        await store.close()


async def test_fault_16_a_database_that_is_gone_at_settle_fails_no_write(store_url: str) -> None:
    """The labels are on and the ledger cannot be told: no false failure, and no second write."""
    tracker = Interrupted()
    with possible_outage(store_url) as outage:
        async with _impatient(store_url, tracker) as writing:
            request = writing.request()
            tracker.after.append(outage.begin)
            for _ in range(2):
                with pytest.raises(StorageUnavailable):
                    await writing.attempt(request)
            outage.end()
            assert (S.DISPATCHED, 1) == ((await writing.record(request)).state, tracker.calls)
            assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
            assert S.RECONCILED_APPLIED is (await writing.check(request)).state
            assert (1, 1) == (tracker.calls, len(tracker.commits))
            assert [] == await verify(writing.store)


class CutAtSettle(Ledger):
    """A ledger whose first settle is committed while the connection that would say so is cut."""

    is_cut = False

    async def settle(self, *args: Any, **kwargs: Any) -> Moved:  # noqa: ANN401 - as the original
        """Settle; the first time, raise as for a commit whose outcome is open."""
        moved = await super().settle(*args, **kwargs)
        if not self.is_cut:
            self.is_cut = True
            raise StorageUnavailable("the connection broke")
        return moved


async def test_fault_16_a_settle_whose_answer_is_lost_is_found(store_url: str) -> None:
    """The outcome was committed and nobody heard: the next attempt is answered its receipt."""
    tracker = ScriptedTracker()
    async with _impatient(store_url, tracker) as writing:
        writing.services = replace(writing.services, ledger=CutAtSettle(writing.store))
        request = writing.request()
        with pytest.raises(StorageUnavailable):
            await writing.attempt(request)
        result = await writing.carry(request)
        assert (WriteOutcome.APPLIED, True) == (result.outcome, result.replayed)
        assert S.APPLIED is (await writing.check(request)).state
        assert (1, 1) == (tracker.calls, len(tracker.commits))


@dataclass
class Ended:
    """A run that was ended while its write was at the tracker, and that write's row."""

    services: Services
    tracker: ScriptedTracker
    client: Client
    run: Run

    async def record(self) -> OperationRecord:
        """The ledger's row."""
        [record] = await self.services.ledger.list(workflow_id=self.run.id)
        return record

    async def settled(self) -> Outcome:
        """Make a pass once lease and quiet period are over; what it says of the row."""
        key = (await self.record()).operation_key
        timings = self.services.ledger.timings
        over = timings.lease_seconds + timings.quiet_period_seconds
        self.services.store._offset += timedelta(seconds=over)
        swept = await Sweeper(self.client, self.services).sweep()
        return swept.outcomes[key]


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Services]:
    """Stores of its own, whose clock a test may set.

    A lease bears three calls: this one is long, so that however slow the machine is, the first
    attempt is not too late to send, and is held for as long as the test likes.
    """
    async with opened_services(tmp_path) as services:
        ledger = Ledger(services.store, lease_seconds=600, quiet_period_seconds=600)
        yield replace(services, ledger=ledger)


async def _ended(client: Client, alone: Services, shell: Shell, how: str) -> Ended:
    """End a run by command while its write is held, and then the worker that held it."""
    tracker = ScriptedTracker(gate=Gate())
    services = with_tracker(alone, tracker)
    outer = World(client=client, services=services, queue=TASK_QUEUE)
    async with altered_world(outer, services=services) as world:
        script = [label(), final("mutation-receipt", labels=("bug",))]
        context = {"tracker": "scripted"}
        run = await world.start(*script, mode="approve", context=context)
        await run.review("approve")
        assert tracker.gate
        await tracker.gate.entered()
        told = await shell.temporal("workflow", how, "--workflow-id", run.id)
        assert 0 == told.status, told.err

        async def over() -> bool:
            return not await run.is_running()

        assert await eventually(over)
    return Ended(services, tracker, client, run)


ENDINGS = ("terminate", "cancel")


@pytest.mark.parametrize("how", ENDINGS)
async def test_fault_17_a_write_of_a_run_that_was_ended_is_settled_without_it(
    server: Client, alone: Services, tmp_path: Path, how: str
) -> None:
    """Terminated or cancelled with the write under way: what happened is found, with a receipt."""
    ended = await _ended(server, alone, Shell(tmp_path, server), how)
    left = await ended.record()
    assert (OPERATION, S.DISPATCHED, 1) == (left.operation_id, left.state, left.dispatches)
    # The request had left, and arrives although nobody waits for it any more.
    ended.tracker._commit(left.operation_key, left.labels)
    assert Outcome.APPLIED is await ended.settled()
    record = await ended.record()
    assert (S.RECONCILED_APPLIED, True) == (record.state, record.receipt is not None)
    assert [Commit(left.operation_key, ("bug",))] == ended.tracker.commits


@pytest.mark.parametrize("how", ENDINGS)
async def test_fault_17_a_write_that_never_arrived_is_told_to_a_person(
    server: Client, alone: Services, tmp_path: Path, how: str
) -> None:
    """Nothing shows after the quiet period: a person is told, and nobody sends it again."""
    ended = await _ended(server, alone, Shell(tmp_path, server), how)
    assert Outcome.ABSENT is await ended.settled()
    record = await ended.record()
    assert (S.RECONCILED_ABSENT, "operations") == (record.state, record.attention_owner)
    assert (1, []) == (ended.tracker.calls, ended.tracker.commits)
