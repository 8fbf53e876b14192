"""What a soak draws, and whether it would see a write that no switch stopped."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from tests.fakes.commit_log import Action, Entry, Via
from tests.fakes.facts import Audited, Facts
from tests.fakes.faults import NO_FAULT
from tests.fakes.http_tracker import BOT
from tests.soak.disasters import Stop
from tests.soak.people import Approved
from tests.soak.plans import Act, Answer, Kind, draw_run
from tests.soak.verdict import SEND_SECONDS, sent_unapproved, sent_while_stopped
from tests.soak.weather import READS, WRITES, Weather
from tests.unit.storage.samples import operation, record
from triage.storage.transitions import OperationState

RUNS: Final = 500
DISPATCHED: Final = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
MOMENT: Final = DISPATCHED.timestamp()


def test_a_seed_draws_the_same_runs_again() -> None:
    """A run's plan depends on the seed and its number, and on nothing that was drawn before."""
    plans = [draw_run(7, number) for number in range(20)]
    assert list(reversed(plans)) == [draw_run(7, number) for number in reversed(range(20))]
    assert plans != [draw_run(8, number) for number in range(20)]


def test_five_hundred_runs_meet_everything() -> None:
    """Every kind of run, act and answer is drawn, whatever the seed."""
    plans = [draw_run(7, number) for number in range(RUNS)]
    assert set(Kind) == {plan.kind for plan in plans}
    assert set(Act) == {timed.act for plan in plans for timed in plan.acts}
    assert set(Answer) == {answer for plan in plans for answer in plan.answers}


def test_a_request_s_fate_does_not_depend_on_other_issues() -> None:
    """The third write on an issue is struck alike, however often another issue was written on."""
    busy, idle = (Weather(7, reads=0.5, writes=0.5) for _ in range(2))
    fates = []
    for _ in range(20):
        busy.next("POST", "/repos/-/soak/issues/2/labels", "op_2")
        fates.append(busy.next("POST", "/repos/-/soak/issues/1/labels", "op_1"))
    assert fates == [idle.next("POST", "/repos/-/soak/issues/1/labels", "op_1") for _ in range(20)]
    assert NO_FAULT in fates
    assert any(fate is not NO_FAULT for fate in fates)


def test_every_fault_strikes() -> None:
    """Of a few thousand requests, each kind of fault strikes some."""
    weather = Weather(7, reads=0.5, writes=0.5)
    for number in range(2_000):
        weather.next("GET", f"/repos/-/soak/issues/{number}", "")
        weather.next("POST", f"/repos/-/soak/issues/{number}/labels", "op")
    assert {*READS, *WRITES} == set(weather.counts)


def _facts(sent_after: float) -> Facts:
    """A write that was dispatched at a moment, and sent so many seconds later."""
    row = operation()
    entry = Entry(
        action=Action.LABELED,
        actor=BOT,
        repository="soak",
        issue="1",
        label="bug",
        via=Via.API,
        operation=row.operation_key,
        seq=1,
        time=MOMENT + sent_after,
    )
    move = Audited(
        seq=1,
        kind="operation.dispatched",
        subject=row.operation_key,
        at=DISPATCHED,
        details={"version": 3, "digest": row.digest},
    )
    return Facts(
        operations={row.operation_key: record(OperationState.APPLIED)},
        buried={},
        consents=[],
        audit=[move],
        log=[entry],
        early=1,
    )


@pytest.mark.parametrize(
    ("sent_after", "stop", "seen"),
    [
        (1.0, {"since": -1.0, "until": 5.0}, True),
        (1.0, {"since": 0.5, "until": 5.0}, False),
        (1.0, {"since": -1.0, "until": 0.5}, False),
        (1.0, {"since": -1.0, "until": 5.0, "tenant": "another"}, False),
        (1.0, {"since": -1.0, "until": 5.0, "tenant": "default"}, True),
        (SEND_SECONDS + 2, {"since": 1.0, "until": 99.0}, True),
    ],
)
def test_a_write_that_no_switch_stopped_is_seen(
    sent_after: float, stop: dict[str, Any], seen: bool
) -> None:
    """One that was dispatched after the stop, or sent long after it; not one on its way."""
    since, until = MOMENT + stop["since"], MOMENT + stop["until"]
    stops = [Stop(tenant=stop.get("tenant"), since=since, until=until)]
    assert seen is bool([*sent_while_stopped(_facts(sent_after), stops)])


@pytest.mark.parametrize(("version", "seen"), [(3, False), (2, True), (4, True)])
def test_a_write_that_nobody_approved_is_seen(version: int, seen: bool) -> None:
    """What the ledger calls approved is held against what people did approve."""
    row = operation()
    approved = {Approved(row.workflow_id, row.operation_id, version)}
    assert seen is bool([*sent_unapproved(_facts(1.0), approved)])
