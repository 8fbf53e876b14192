"""Whoever stood still between the last look and the first byte does not send any more."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from tests.activities.writing import Writing
from triage.contracts.payloads import WriteOutcome
from triage.storage.ledger import Ledger
from triage.storage.operations import Moved
from triage.storage.switches import Switches
from triage.storage.transitions import OperationState as S

LEASE_SECONDS = 3
STOOD_STILL_SECONDS = 1.2
"""More than the third of a lease in which a write has to be sent."""


class StandsStill(Ledger):
    """A ledger after whose last answer the process stands still, once."""

    stood = False

    async def still_holds(self, operation_key: str, epoch: int) -> Moved:
        """Answer as ever, late."""
        moved = await super().still_holds(operation_key, epoch)
        if not self.stood:
            self.stood = True
            await asyncio.sleep(STOOD_STILL_SECONDS)
        return moved


@pytest.fixture
def late(writing: Writing) -> Writing:
    """A write whose first attempt stands still right before it sends."""
    ledger = StandsStill(writing.store, lease_seconds=LEASE_SECONDS, quiet_period_seconds=120)
    writing.services = replace(writing.services, ledger=ledger)
    return writing


async def test_what_is_late_is_not_sent(late: Writing) -> None:
    """The time for a call runs from the last look on: afterwards others may have settled it."""
    request = late.request()
    with pytest.raises(ApplicationError, match="wait"):
        await late.attempt(request)
    assert (S.UNKNOWN, 0) == ((await late.record(request)).state, late.tracker.calls)


async def test_what_was_late_is_sent_by_a_later_attempt(late: Writing) -> None:
    """It is read back, found absent after the quiet period, and sent once."""
    request = late.request()
    assert WriteOutcome.APPLIED is (await late.carry(request)).outcome
    assert 1 == late.tracker.calls
    assert late.waited > timedelta(seconds=100)


async def test_writes_that_are_stopped_meanwhile_stay_stopped(
    late: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch that was looked at long ago says nothing of now."""
    looked, looks = Switches.writes_stopped, 0

    async def look(switches: Switches, *tenant: Any) -> bool:  # noqa: ANN401 - as the original
        nonlocal looks
        answer = await looked(switches, *tenant)
        looks += 1
        if looks == 2:
            await switches.stop("ann", "wrong labels")
            await asyncio.sleep(STOOD_STILL_SECONDS)
        return answer

    monkeypatch.setattr(Switches, "writes_stopped", look)
    result = await late.carry(late.request())
    assert (WriteOutcome.REFUSED, 0) == (result.outcome, late.tracker.calls)
