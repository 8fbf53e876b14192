"""Whoever stood still between the last look and the first byte does not send any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities import label_sending
from tests.activities.writing import Writing
from triage.contracts.payloads import WriteOutcome
from triage.storage.ledger import Ledger
from triage.storage.operations import Moved
from triage.storage.switches import Switches
from triage.storage.transitions import OperationState as S

LEASE_SECONDS = 60
STOOD_STILL_SECONDS = 21.0
"""More than the third of a lease in which a write has to be sent."""


class StandsStill(Ledger):
    """A ledger after whose last answer the process stands still, once."""

    stood = False
    clock_seconds = 0.0

    async def still_holds(self, operation_key: str, epoch: int) -> Moved:
        """Answer as ever, late."""
        moved = await super().still_holds(operation_key, epoch)
        if not self.stood:
            self.stood = True
            self.stand_still()
        return moved

    def stand_still(self) -> None:
        """Let too much time pass for a write to be sent."""
        self.clock_seconds += STOOD_STILL_SECONDS


@pytest.fixture
def ledger(writing: Writing, monkeypatch: pytest.MonkeyPatch) -> StandsStill:
    """The ledger, which has the clock by which a write is late."""
    opened = StandsStill(writing.store, lease_seconds=LEASE_SECONDS, quiet_period_seconds=120)
    monkeypatch.setattr(label_sending, "clock", lambda: opened.clock_seconds)
    return opened


@pytest.fixture
def late(writing: Writing, ledger: StandsStill) -> Writing:
    """A write whose first attempt stands still right before it sends."""
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
    assert late.waited >= timedelta(seconds=120)


async def test_writes_that_are_stopped_meanwhile_stay_stopped(
    late: Writing, ledger: StandsStill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch that was looked at long ago says nothing of now."""
    looked, looks = Switches.writes_stopped, 0

    async def look(switches: Switches, *tenant: Any) -> bool:  # noqa: ANN401 - as the original
        nonlocal looks
        answer = await looked(switches, *tenant)
        looks += 1
        if looks == 2:
            await switches.stop("ann", "wrong labels")
            ledger.stand_still()
        return answer

    monkeypatch.setattr(Switches, "writes_stopped", look)
    result = await late.carry(late.request())
    assert (WriteOutcome.REFUSED, 0) == (result.outcome, late.tracker.calls)
