"""A run that as many people as have to can never approve is seen in the list of those that wait."""

from __future__ import annotations

from dataclasses import replace

import pytest
from temporalio.client import WorkflowExecution

from tests.fixed_rules import rules_with
from tests.workflow.decisions import final, label
from tests.workflow.runs import Run, eventually
from tests.workflow.world import World, altered_world
from triage.cli.listing import PENDING
from triage.cli.pending import vain_of

SCRIPT = [label(), final("mutation-receipt", labels=("bug",))]


async def _listed(world: World, run: Run) -> WorkflowExecution:
    """Return a run as the list has it, once it has."""

    async def look() -> WorkflowExecution | None:
        found = world.client.list_workflows(f"{PENDING} AND WorkflowId = '{run.id}'")
        return await anext(aiter(found), None)

    return await eventually(look)


@pytest.mark.parametrize(
    ("author", "may"), [("Reporter", ("ann",)), ("eve", None)], ids=["the author is one", "another"]
)
async def test_approvals_that_can_never_be_enough_are_found(
    world: World, author: str, may: tuple[str, ...] | None
) -> None:
    """Who may approve is what the run was pinned to, and its issue's author never does."""
    rules = rules_with(approvals_required=2, approvers=("ann", "@reporter"))
    async with altered_world(world, services=replace(world.services, rules=rules)) as named:
        run = await named.start(*SCRIPT, mode="approve", context={"author": author})
        waiting = await run.waiting()
        listed = await _listed(named, run)
        assert [may, None] == await vain_of(named.client, [listed, listed], [waiting, "not asked"])
        await run.handle.terminate()
