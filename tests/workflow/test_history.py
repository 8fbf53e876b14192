"""What a run writes into its history: few events, small ones, and search attributes thrice."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import JsonValue
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.common import SearchAttributeKey

from tests.workflow.decisions import a_request, final, label, lookup, policy
from tests.workflow.runs import Run, envelope, eventually
from tests.workflow.world import World
from triage.contracts.search_attributes import (
    SEARCH_ATTRIBUTES,
    TRIAGE_FAILURE,
    TRIAGE_ROUTE,
    TRIAGE_STATUS,
    TRIAGE_TENANT,
    TRIAGE_WAITING_SINCE,
)
from triage.converter import plain

W_EVENTS = 8
W_BYTES = 3_600
API_EVENTS = 20
API_BYTES = 5_100
WRITE_EVENTS = 16
STEP_BYTES = 1_650
"""One decision and one read: seven events; some bytes come and go with times and ids."""
TIMER = EventType.EVENT_TYPE_TIMER_STARTED
SCHEDULED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
UPSERT = EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES
MARKER = EventType.EVENT_TYPE_MARKER_RECORDED
TASK = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
PAID = {
    SCHEDULED,
    TIMER,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
    UPSERT,
}
"""The events that stand for billable actions; all local activities of a task are one more."""

WRITE = [label(), final("mutation-receipt", labels=("bug",))]


def size(events: list[HistoryEvent]) -> int:
    """Bytes of a history as the server stores it."""
    return sum(event.ByteSize() for event in events)


def actions(events: list[HistoryEvent]) -> int:
    """Billable actions of a history."""
    tasks, with_local = 0, set[int]()
    for event in events:
        tasks += event.event_type == TASK
        if event.event_type == MARKER:
            with_local.add(tasks)
    return sum(event.event_type in PAID for event in events) + len(with_local)


async def _kinds_within(run: Run, *, events: int, actions_: int, bytes_: int) -> Counter[Any]:
    """See a run to its end, hold its history to these bounds, and count its events by kind."""
    await run.response()
    found = await run.events()
    kinds = Counter[Any](event.event_type for event in found)
    assert len(found) <= events, kinds
    assert size(found) <= bytes_
    assert actions_ == actions(found)
    return kinds


async def test_one_triage_takes_8_events_at_most(world: World) -> None:
    """A model that asks nobody, a read, and it again: one task, 8 events, three actions."""
    run = await world.start(model="rules")
    kinds = await _kinds_within(run, events=W_EVENTS, actions_=3, bytes_=W_BYTES)
    assert (0, 2, 1, 1) == (kinds[SCHEDULED], kinds[MARKER], kinds[UPSERT], kinds[TASK])


async def test_one_triage_by_a_model_behind_an_api_takes_20_events_at_most(world: World) -> None:
    """Each question to a model that may cost or wait is an activity: 20 events, six actions."""
    run = await world.start(lookup(), final("owners-api"))
    kinds = await _kinds_within(run, events=API_EVENTS, actions_=6, bytes_=API_BYTES)
    assert (2, 2, 1) == (kinds[SCHEDULED], kinds[MARKER], kinds[UPSERT])


async def waits(run: Run) -> dict[str, JsonValue]:
    """Return the envelope of what is pending, once it is.

    The history is asked, not the run: a query while a local activity runs costs a task more.
    """

    async def look() -> bool:
        return TIMER in [event.event_type for event in await run.events()]

    assert await eventually(look)
    return envelope(await run.waiting())


@pytest.mark.parametrize("way", ["signal", "update"])
async def test_an_approved_write_adds_16_events_at_most(world: World, way: str) -> None:
    """A write that a person approves costs at most 16 events and six actions beyond the triage."""
    script = [lookup(), final("owners-api")]
    plain = await world.start(*script)
    await plain.response()
    run = await world.start(*script, mode="approve")
    approval = await waits(run)
    if way == "signal":
        await run.signal("approve", approval)
    else:
        await run.update({**approval, "verdict": "approve"})
    await run.response()
    before, after = await plain.events(), await run.events()
    kinds = Counter(event.event_type for event in after)
    assert len(after) - len(before) <= WRITE_EVENTS, kinds
    paid = sum(kinds[kind] for kind in PAID)
    assert paid - sum(event.event_type in PAID for event in before) <= 6, kinds


async def test_a_history_grows_by_the_same_few_bytes_a_step(world: World) -> None:
    """Over 100 steps each one costs what each of the first costs, however much was read before."""
    counts = (20, 40, 100)
    runs = [await world.start(*[policy("security")] * steps, max_steps=steps) for steps in counts]
    for run in runs:
        assert "max_steps_exceeded" == (await run.response()).failure
    sizes = [size(await run.events()) for run in runs]
    small, middle, large = sizes
    steps_cost = [(middle - small) / 20, (large - middle) / 60]
    assert max(steps_cost) <= STEP_BYTES, steps_cost
    assert abs(steps_cost[1] - steps_cost[0]) < 0.05 * steps_cost[0], steps_cost


async def test_content_is_not_in_the_history(world: World) -> None:
    """Beside the start's own input, neither the issue's text nor what tools returned is kept."""
    marked = a_request(body="a body that is marked with XYZZY-42")
    run = await world.start(lookup(), policy(), final("owners-api"), request=marked)
    await run.response()
    first, *rest = await run.events()
    assert b"XYZZY-42" in first.SerializeToString()
    for event in map(_inflated, rest):
        assert b"XYZZY-42" not in event.SerializeToString(), event.event_type
        assert b"TRIAGE-SECURITY" not in event.SerializeToString(), event.event_type


def _inflated(event: HistoryEvent) -> HistoryEvent:
    """Return an event with what its marker holds as it was before it was deflated."""
    for held in event.marker_recorded_event_attributes.details.values():
        for payload in held.payloads:
            payload.CopyFrom(plain(payload))
    return event


def upserts(events: list[HistoryEvent]) -> list[dict[str, str]]:
    """What each write of search attributes wrote, as the JSON that went over the wire."""
    return [
        {
            name: payload.data.decode()
            for name, payload in sorted(
                event.upsert_workflow_search_attributes_event_attributes.search_attributes.indexed_fields.items()
            )
        }
        for event in events
        if event.event_type == UPSERT
    ]


async def test_a_run_that_waits_writes_search_attributes_three_times(world: World) -> None:
    """They are written when the wait begins, when it ends and when the run ends: never else."""
    run = await world.start(*WRITE, mode="approve", context={"tenant": "acme"})
    await run.waiting()
    [begun] = upserts(await run.events())
    assert ["TriageStatus", "TriageTenant", "TriageWaitingSince"] == sorted(begun)
    since = await _attribute(run, TRIAGE_WAITING_SINCE)
    assert isinstance(since, datetime)
    assert abs((datetime.now(UTC) - since).total_seconds()) < 600
    assert ("tool_pending", "acme") == (
        await _attribute(run, TRIAGE_STATUS),
        await _attribute(run, TRIAGE_TENANT),
    )
    await run.review("approve")
    await run.response()
    _, ended, final_ones = upserts(await run.events())
    assert ["TriageWaitingSince"] == sorted(ended)
    assert {"TriageRoute": '"bug"', "TriageStatus": '"completed"', "TriageTenant": '"acme"'} == (
        final_ones
    )
    assert await _attribute(run, TRIAGE_WAITING_SINCE) is None


ENDINGS: list[tuple[list[JsonValue], dict[str, str | None]]] = [
    (
        [lookup(), final("owners-api")],
        {"TriageStatus": "completed", "TriageRoute": "bug", "TriageFailure": None},
    ),
    (
        [label()],
        {
            "TriageStatus": "review_required",
            "TriageRoute": None,
            "TriageFailure": "approval_required",
        },
    ),
    (
        [None],
        {"TriageStatus": "failed", "TriageRoute": None, "TriageFailure": "model_invalid_output"},
    ),
]


@pytest.mark.parametrize(("script", "expected"), ENDINGS, ids=range(len(ENDINGS)))
async def test_a_run_that_does_not_wait_writes_them_once(
    world: World, script: list[JsonValue], expected: dict[str, str | None]
) -> None:
    """At its end a run says status, route, failure and tenant, and nothing about anybody."""
    run = await world.start(*script)
    await run.response()
    events = await run.events()
    assert 1 == len(upserts(events))
    found = {
        key.name: await _attribute(run, key)
        for key in (TRIAGE_STATUS, TRIAGE_ROUTE, TRIAGE_FAILURE)
    }
    assert expected == found
    assert "default" == await _attribute(run, TRIAGE_TENANT)
    assert await _attribute(run, TRIAGE_WAITING_SINCE) is None


async def test_invalid_input_can_be_found_too(world: World) -> None:
    """A run that could not begin says so in its search attributes."""
    run = await world.start_raw()
    await run.response()
    assert ("failed", "invalid_input", "default") == (
        await _attribute(run, TRIAGE_STATUS),
        await _attribute(run, TRIAGE_FAILURE),
        await _attribute(run, TRIAGE_TENANT),
    )


async def test_waiting_runs_can_be_listed(world: World, server: Client) -> None:
    """The runs that wait for a person are found by a search, and gone from it when decided."""
    run = await world.start(*WRITE, mode="approve")
    await run.waiting()
    search = f'TriageWaitingSince IS NOT NULL AND WorkflowId = "{run.id}"'

    async def listed(count: int) -> bool:
        return count == len([found async for found in server.list_workflows(search)])

    assert await eventually(lambda: listed(1))
    await run.review("approve")
    await run.response()
    assert await eventually(lambda: listed(0))


def test_the_registry_of_search_attributes_is_what_the_page_says() -> None:
    """There are five, four of them keywords and one a time."""
    assert {
        "TriageStatus": "KEYWORD",
        "TriageRoute": "KEYWORD",
        "TriageFailure": "KEYWORD",
        "TriageTenant": "KEYWORD",
        "TriageWaitingSince": "DATETIME",
    } == {key.name: key.indexed_value_type.name for key in SEARCH_ATTRIBUTES}


async def _attribute(run: Run, key: SearchAttributeKey[Any]) -> object:
    found: object = (await run.handle.describe()).typed_search_attributes.get(key)
    return found
