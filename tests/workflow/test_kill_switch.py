"""A person approves, and writes are stopped before the approval is used."""

from __future__ import annotations

from tests.workflow.decisions import OPERATION, final, label
from tests.workflow.runs import outcome
from tests.workflow.world import World
from triage.contracts.response import Status
from triage.storage.switches import Switches

TENANT = "stopped"


async def test_an_approved_write_is_not_sent_once_writes_are_stopped(world: World) -> None:
    """Nothing is written, the run ends with a person, and other tenants go on; no restart."""
    switches = Switches(world.services.store)
    script = [label(), final("mutation-receipt", labels=("bug",))]
    run = await world.start(*script, mode="approve", context={"tenant": TENANT})
    other = await world.start(*script, mode="approve")
    await run.waiting()
    await other.waiting()
    await switches.stop("ann", "wrong labels", tenant=TENANT)
    await run.review("approve")
    await other.review("approve")
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, "policy_block") == outcome(response)
    assert "writes are stopped" == response.reason
    assert ([], [(OPERATION, 3, "refused")]) == (
        await world.written(run),
        await run.operation_states(),
    )
    assert Status.COMPLETED is (await other.response()).status
    assert ["bug"] == await world.written(other)


async def test_writes_go_on_when_they_are_allowed_again(world: World) -> None:
    """Allowing writes needs no restart either: the next approval is carried out."""
    switches = Switches(world.services.store)
    await switches.stop("ann", "wrong labels", tenant=TENANT)
    script = [label(), final("mutation-receipt", labels=("bug",))]
    run = await world.start(*script, mode="approve", context={"tenant": TENANT})
    await run.waiting()
    await switches.allow("ann", tenant=TENANT)
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status
    assert ["bug"] == await world.written(run)
