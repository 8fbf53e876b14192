"""A pass of the sweeper starts what a dead process accepted, and removes old deliveries."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from temporalio.client import Client

from activities.services import Services
from activities.sweeper import Sweeper
from triage.storage.admission import Admission, Content, Delivery, Subject
from triage.storage.outbox import Outbox

# Nothing here has a run, so nobody is asked about one.
NOBODY = cast("Client", None)
SUBJECT = Subject(
    tenant="default", source="github", repository="acme/shop", repository_id="1", number="101"
)


async def test_a_pass_starts_what_was_left_and_removes_what_is_old(services: Services) -> None:
    """What is waiting is started each time, and a delivery goes with the ledger's own retention."""
    delivery = Delivery(delivery_id="a", event="issues", action="opened", body_digest="a")
    content = Content(digest="a", at=datetime.now(UTC), document=b"{}")
    await Admission(services.store, timedelta(days=1)).admit(delivery, SUBJECT, content)
    outbox = Outbox(services.store)
    started: list[Any] = []

    async def start() -> None:
        if (held := await outbox.take()) is not None:
            started.append(await outbox.started(held, "run", None))

    sweeper = Sweeper(NOBODY, services, start)
    assert 0 == (await sweeper.sweep()).deliveries
    services.store._offset += services.ledger_retention + timedelta(hours=1)
    assert 1 == (await sweeper.sweep()).deliveries
    assert [True] == started


async def test_trouble_with_starting_stops_no_pass(
    services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    """Writes are looked after although nothing can be started."""

    async def start() -> None:
        raise RuntimeError("no")

    with caplog.at_level(logging.WARNING):
        assert {} == (await Sweeper(NOBODY, services, start).sweep()).outcomes
    assert "could not be started" in caplog.text
