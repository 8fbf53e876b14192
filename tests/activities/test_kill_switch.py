"""A switch that is turned at any moment before the first byte keeps the write from being sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text
from temporalio.exceptions import ApplicationError

from activities.label_write import WRITES_STOPPED
from activities.labels import OTHER_TENANT
from activities.services import Services
from tests.activities.scripted_tracker import Add
from tests.activities.writing import Writing
from triage.contracts.payloads import WriteOutcome, WriteRequest
from triage.storage.audit_verify import verify
from triage.storage.errors import StorageError
from triage.storage.ledger import Ledger
from triage.storage.operations import Moved
from triage.storage.switches import Switches
from triage.storage.transitions import OperationState as S

Turn = Callable[[], Awaitable[Any]]


class TurnedAfterDispatch(Ledger):
    """A ledger during whose dispatch somebody does something: it is done before the first byte."""

    turn: Turn

    async def dispatch(self, operation_key: str, epoch: int, *, approvals: int = 1) -> Moved:
        """Dispatch as ever, and then let it happen."""
        moved = await super().dispatch(operation_key, epoch, approvals=approvals)
        await self.turn()
        return moved


def turned_after_dispatch(writing: Writing, turn: Turn) -> Services:
    """Services in which `turn` happens between the dispatch and the first byte."""
    ledger = TurnedAfterDispatch(writing.store, lease_seconds=60, quiet_period_seconds=120)
    ledger.turn = turn
    return replace(writing.services, ledger=ledger)


def _stop(writing: Writing, tenant: str | None = None) -> Turn:
    return lambda: Switches(writing.store).stop("ann", "wrong labels", tenant=tenant)


@pytest.mark.parametrize("tenant", [None, "default"])
async def test_a_stopped_write_is_refused_before_it_is_dispatched(
    writing: Writing, tenant: str | None
) -> None:
    """Stopped after the approval, for everybody or for its tenant: no effect was possible."""
    request = writing.request()
    await _stop(writing, tenant)()
    result = await writing.carry(request)
    assert (WriteOutcome.REFUSED, WRITES_STOPPED) == (result.outcome, result.detail)
    record = await writing.check(request)
    assert (S.CANCELLED, 0, None, WRITES_STOPPED) == (
        record.state,
        record.dispatches,
        record.dispatched_at,
        record.reason,
    )
    assert 0 == writing.tracker.calls


async def test_another_tenant_s_switch_does_not_concern_a_write(writing: Writing) -> None:
    """Whoever is not stopped goes on."""
    await _stop(writing, "another")()
    assert WriteOutcome.APPLIED is (await writing.carry(writing.request())).outcome


async def test_no_request_passes_a_switch_as_another_tenant_s(writing: Writing) -> None:
    """Whose row is in the ledger, that tenant's switch counts, whatever the request says."""
    request = writing.request()
    writing.tracker.will(Add.NOT_NOW)
    with pytest.raises(ApplicationError):
        await writing.attempt(request)
    await _stop(writing, "default")()
    forged = await writing.carry(request.model_copy(update={"tenant": "another"}))
    assert (WriteOutcome.REFUSED, OTHER_TENANT) == (forged.outcome, forged.detail)
    assert S.RESERVED is (await writing.record(request)).state
    honest = await writing.carry(request)
    assert (WriteOutcome.REFUSED, WRITES_STOPPED) == (honest.outcome, honest.detail)
    assert 1 == writing.tracker.calls


async def test_a_write_stopped_between_dispatch_and_first_byte_is_taken_back(
    writing: Writing,
) -> None:
    """Nothing was sent, so the row says that nothing happened, and no quiet period is needed."""
    writing.services = turned_after_dispatch(writing, _stop(writing))
    request = writing.request()
    result = await writing.carry(request)
    assert (WriteOutcome.REFUSED, WRITES_STOPPED) == (result.outcome, result.detail)
    record = await writing.check(request)
    assert (S.CANCELLED, 1, WRITES_STOPPED) == (record.state, record.dispatches, record.reason)
    assert (0, timedelta()) == (writing.tracker.calls, writing.waited)
    assert [] == await verify(writing.store)


async def test_a_stopped_write_that_may_not_be_sent_again_has_failed(writing: Writing) -> None:
    """After the last permitted dispatch a definite no is the end, stopped or not."""
    request = writing.request()
    writing.tracker.will(Add.NOT_NOW, Add.NOT_NOW)
    turns = 0

    async def third() -> None:
        nonlocal turns
        turns += 1
        if turns == 3:
            await _stop(writing)()

    writing.services = turned_after_dispatch(writing, third)
    result = await writing.carry(request)
    assert (WriteOutcome.FAILED, WRITES_STOPPED) == (result.outcome, result.detail)
    assert (S.FAILED, 2) == ((await writing.check(request)).state, writing.tracker.calls)


async def test_a_stopped_write_may_be_tried_again_by_a_newer_version(writing: Writing) -> None:
    """Once writes are allowed again, with an approval of its own; the old one stays refused."""
    scope = "5c0fe" * 6
    old, services = writing.request(scope=scope), writing.services
    writing.services = turned_after_dispatch(writing, _stop(writing))
    assert WriteOutcome.REFUSED is (await writing.carry(old)).outcome
    await Switches(writing.store).allow("ann")
    assert WriteOutcome.REFUSED is (await writing.carry(old)).outcome
    writing.services = services
    new = writing.request(scope=scope, version=6)
    assert WriteOutcome.APPLIED is (await writing.carry(new)).outcome
    assert 1 == writing.tracker.calls


async def _sent_and_then_stopped(writing: Writing, fault: Add) -> WriteRequest:
    request = writing.request()
    writing.tracker.will(fault)
    with pytest.raises(ApplicationError):
        await writing.attempt(request)
    await _stop(writing)()
    return request


async def test_a_write_that_happened_is_settled_although_writes_are_stopped(
    writing: Writing,
) -> None:
    """Reading sends nothing, so no switch stops it: the run learns what was done."""
    request = await _sent_and_then_stopped(writing, Add.CUT_AFTER)
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    assert (S.RECONCILED_APPLIED, 1) == (
        (await writing.check(request)).state,
        writing.tracker.calls,
    )


async def test_an_absent_write_is_not_sent_again_while_writes_are_stopped(
    writing: Writing,
) -> None:
    """The switch is looked at before each sending, not only before the first."""
    request = await _sent_and_then_stopped(writing, Add.CUT_BEFORE)
    result = await writing.carry(request)
    assert (WriteOutcome.REFUSED, WRITES_STOPPED) == (result.outcome, result.detail)
    assert (S.CANCELLED, 1) == ((await writing.check(request)).state, writing.tracker.calls)


async def test_a_switch_that_cannot_be_read_stops_the_write(writing: Writing) -> None:
    """Not knowing is a no: the attempt fails with nothing dispatched, and a later one goes on."""
    request = writing.request()
    await _rename(writing, "switches", "mislaid")
    with pytest.raises(StorageError):
        await writing.attempt(request)
    assert (S.RESERVED, 0) == ((await writing.record(request)).state, writing.tracker.calls)
    await _rename(writing, "mislaid", "switches")
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome


async def test_a_switch_that_cannot_be_read_after_the_dispatch_leaves_a_doubt(
    writing: Writing,
) -> None:
    """The attempt ends without a byte; the next one reads, and waits for the quiet period."""
    services = writing.services
    writing.services = turned_after_dispatch(
        writing, lambda: _rename(writing, "switches", "mislaid")
    )
    request = writing.request()
    with pytest.raises(StorageError):
        await writing.attempt(request)
    assert (S.DISPATCHED, 0) == ((await writing.record(request)).state, writing.tracker.calls)
    await _rename(writing, "mislaid", "switches")
    writing.services = services
    assert WriteOutcome.APPLIED is (await writing.carry(request)).outcome
    assert (1, True) == (writing.tracker.calls, writing.waited > timedelta(seconds=60))


async def _rename(writing: Writing, old: str, new: str) -> None:
    async with writing.store.write() as connection:
        await connection.execute(text(f"ALTER TABLE {old} RENAME TO {new}"))
