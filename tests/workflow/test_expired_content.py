"""Content that has expired is unavailable, never empty: what needs it goes to a person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.workflow.decisions import final, label, lookup, policy
from tests.workflow.runs import Run, outcome
from tests.workflow.world import World, altered_world
from triage.contracts.canonical import short_hash
from triage.contracts.response import Status
from triage.storage.evidence import StoredEvidence

GONE = timedelta(seconds=-1)


@pytest.fixture(scope="module")
async def forgetful(world: World) -> AsyncIterator[World]:
    """A worker whose read tools store content that has expired at once."""
    expired = replace(world.services, retention=GONE)
    async with altered_world(world, read_services=expired) as opened:
        yield opened


async def stored(world: World, run: Run) -> list[StoredEvidence]:
    """What the evidence store has of a run."""
    first_run = (await run.handle.describe()).run_id
    assert first_run
    return await world.services.evidence.load(short_hash("default", run.id, first_run), 1_000)


async def test_a_request_whose_content_is_gone_goes_to_review(world: World) -> None:
    """A run cannot decide on a text that is not there any more, and does not invent one."""
    services = replace(world.services, retention=GONE)
    async with altered_world(world, services=services) as opened:
        run = await opened.start(lookup(), final("owners-api"))
        response = await run.response()
    assert (Status.REVIEW_REQUIRED, "tool_error", 1) == (*outcome(response), response.steps)
    assert ((), ()) == (response.tool_sequence, response.evidence_ids)
    assert "unavailable" in response.reason


async def test_a_request_that_expires_while_a_person_decides_keeps_the_evidence(
    world: World,
) -> None:
    """When the text is purged in the middle of a run, what was read before is still reported."""
    script = [lookup(), label(operation_id="op-1"), final("owners-api")]
    run = await world.start(*script, mode="approve")
    await run.waiting()
    await world.services.documents.purge_expired(datetime.now(UTC) + timedelta(days=400), 10_000)
    await run.review("approve")
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, "tool_error") == outcome(response)
    assert ("owners-api", "mutation-receipt") == response.evidence_ids


async def test_evidence_outlives_its_content(forgetful: World) -> None:
    """The content is gone, and id, locator and digest stay, in the store and in the run."""
    run = await forgetful.start(lookup(), policy("feature"), final("owners-api"))
    assert Status.COMPLETED is (await run.response()).status
    rows = await stored(forgetful, run)
    assert [None, None] == [row.content for row in rows]
    seen = (await run.state()).evidence
    assert [(row.evidence_id, row.locator, row.digest) for row in rows] == [
        (item.id, item.locator, item.digest) for item in seen
    ]
    assert all(row.locator and row.digest.startswith("sha256:") for row in rows)


async def test_the_rules_model_does_not_decide_on_what_it_can_not_read(forgetful: World) -> None:
    """With its evidence expired the model abstains: it cites nothing and hands over."""
    response = await forgetful.play(model="rules")
    assert (Status.REVIEW_REQUIRED, None, "bug") == (*outcome(response), response.route)
    assert (("lookup_component_owner",), ()) == (response.tool_sequence, response.evidence_ids)


async def test_content_that_is_kept_is_read(world: World) -> None:
    """The same run with its evidence in place completes: it is the expiry that matters."""
    run = await world.start(model="rules")
    assert Status.COMPLETED is (await run.response()).status
    [row] = await stored(world, run)
    assert row.content is not None
    assert row.expires_at is not None
    left = row.expires_at - datetime.now(UTC)
    assert timedelta(days=29) < left <= timedelta(days=30)


async def test_entailed_grounding_needs_no_content(world: World) -> None:
    """Owner and route are recomputed from facts in the run, so expired evidence still entails."""
    expired = replace(world.services, retention=GONE)
    async with altered_world(world, read_services=expired) as opened:
        response = await opened.play(lookup(), final("owners-api"), grounding="entailed")
    assert (Status.COMPLETED, None) == outcome(response)
