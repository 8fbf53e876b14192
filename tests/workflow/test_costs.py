"""What a run costs that no clock decides: events, actions, bytes and database statements.

docs/performance.md has a table of it, and here every figure of that table is counted again. So
whoever makes a run dearer, or cheaper, sees by how much, and says so on the page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import astuple, dataclass
from itertools import count
from typing import Final

import pytest
from pydantic import JsonValue
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection

from tests.docs.pages import page
from tests.workflow.decisions import a_request, final, lookup
from tests.workflow.runs import Run
from tests.workflow.test_history import actions, size, waits
from tests.workflow.world import World, altered_world, opened_services

QUEUE: Final = "costing"
"""As long as the production name and what else differs there, so that bytes can be compared."""
STEPS: Final = (3, 8)
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run cost; statements are those on SQLite, without the beginnings and the ends."""

    events: int
    actions: int
    bytes: int
    statements: int
    writes: int

    def __sub__(self, other: Cost) -> Cost:
        return Cost(
            *(mine - base for mine, base in zip(astuple(self), astuple(other), strict=True))
        )


@pytest.fixture(scope="module")
async def own(world: World, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """Workers with a database of their own, on a queue that nobody else uses.

    One write is over, so that no run pays for being the first: labels, rules, audit chain.
    """
    home = tmp_path_factory.mktemp("costs")
    async with (
        opened_services(home) as services,
        altered_world(world, services=services, queue=QUEUE) as opened,
    ):
        await _cost(opened, mode="approve", approved="signal")
        yield opened


WRITE = "BEGIN a write"


@contextmanager
def statements(world: World) -> Iterator[list[str]]:
    """Collect what is sent to the database meanwhile, and each beginning of a write."""
    store, seen = world.services.store, list[str]()
    engine, begin = store._engine.sync_engine, store._begin_writing

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    def begun() -> AbstractAsyncContextManager[AsyncConnection]:
        seen.append(WRITE)
        return begin()

    event.listen(engine, "before_cursor_execute", note)
    store._begin_writing = begun
    try:
        yield seen
    finally:
        store._begin_writing = begin
        event.remove(engine, "before_cursor_execute", note)


async def _start(world: World, model: str, options: dict[str, JsonValue]) -> Run:
    """Start a run about an issue of its own, of the one repository that there is."""
    number = f"{next(_numbers):06}"
    context: JsonValue = {"repository": "costs/costs", "issue": f"ISSUE-{number}"}
    chosen = {**options, "model": model, "context": context}
    return await world.start_raw(a_request(), chosen, run_id=f"triage-ISSUE-{number}")


async def _cost(
    world: World, *, model: str = "rules", approved: str = "", **options: JsonValue
) -> Cost:
    """Play a run to its end and count."""
    with statements(world) as seen:
        run = await _start(world, model, options)
        if approved:
            await _approve(run, approved)
        await run.response()
    events = await run.events()
    sent = [statement for statement in seen if not statement.startswith("BEGIN")]
    return Cost(len(events), actions(events), size(events), len(sent), seen.count(WRITE))


async def _recorded(world: World, steps: int, mode: str = "suggest", approved: str = "") -> Cost:
    """Play a run of recorded decisions, each an activity and each but the last with a read."""
    script = await world.store_script([*[lookup()] * (steps - 1), final("owners-api")])
    return await _cost(world, model=script, max_steps=steps, mode=mode, approved=approved)


async def _approve(run: Run, how: str) -> None:
    approval = await waits(run)
    if how == "signal":
        await run.signal("approve", approval)
    else:
        await run.update({**approval, "verdict": "approve"})


async def test_a_run_costs_what_the_page_says(own: World) -> None:
    """Events, actions, statements and transactions are exact; bytes differ with ids and times."""
    few, many = [await _recorded(own, steps) for steps in STEPS]
    each = Cost(*(total // (STEPS[1] - STEPS[0]) for total in astuple(many - few)))
    found = [
        await _cost(own),
        await _cost(own, mode="approve", approved="signal"),
        await _cost(own, mode="approve", approved="update"),
        await _recorded(own, 2),
        await _recorded(own, 2, mode="approve", approved="signal"),
        each,
    ]
    rows = page("docs/performance.md").table(
        "a run", "events", "actions", "KB", "statements", "write transactions"
    )
    written = [[row[1], row[2], *row[4:]] for row in rows]
    counted = [[c.events, c.actions, c.statements, c.writes] for c in found]
    assert written == [list(map(str, row)) for row in counted]
    assert [float(row[3]) for row in rows] == pytest.approx(
        [cost.bytes / 1000 for cost in found], rel=0.03
    )
