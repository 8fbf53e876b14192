"""A continuation of an ended run: a new run with its version and evidence, and its own approval."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import JsonValue

from tests.workflow.decisions import a_request, final, hand_over, label, lookup
from tests.workflow.runs import Run, envelope, outcome
from tests.workflow.world import World, altered_world
from triage.contracts.canonical import short_hash
from triage.contracts.response import Status

WANTS_APPROVAL = [lookup(), label()]
FROM_WHAT_IS_KNOWN = [
    label(operation_id="op-7"),
    final("owners-api", "mutation-receipt", labels=("bug",)),
]


async def _ended(world: World, *script: JsonValue) -> Run:
    run = await world.start(*(script or WANTS_APPROVAL))
    await run.response()
    return run


async def _link(run: Run, **changes: JsonValue) -> dict[str, JsonValue]:
    return {
        "workflow_id": run.id,
        "run_id": run.handle.first_execution_run_id or "",
        "version": (await run.state()).version,
        **changes,
    }


async def _continue(
    world: World,
    run: Run,
    *script: JsonValue,
    continued_from: JsonValue = None,
    repository: str | None = None,
) -> Run:
    """Start a continuation about the same issue; a run's issue is in a repository of its own."""
    return await world.start(
        *(script or FROM_WHAT_IS_KNOWN),
        mode="approve",
        context={"repository": repository or run.id},
        continued_from=continued_from or await _link(run),
    )


async def test_a_continuation_counts_on_and_knows_what_was_read(world: World) -> None:
    """It begins at the ended run's version, cites its evidence and waits for an own approval."""
    ended = await _ended(world)
    before = await ended.state()
    run = await _continue(world, ended)
    # Validated, deciding and pending: three transitions after the ended run's last one.
    pending = await run.waiting_at(before.version + 3)
    assert before.evidence == (await run.state()).evidence
    stale = {**envelope(pending), "version": before.version}
    await run.signal("approve", stale)
    await run.signal("approve", envelope(pending))
    response = await run.response()
    assert (Status.COMPLETED, ("owners-api", "mutation-receipt")) == (
        response.status,
        response.evidence_ids,
    )
    assert ["stale_version"] == await run.refusal_codes()
    assert ["bug"] == await world.written(ended)
    assert 2 == response.steps


async def test_a_terminal_record_never_changes(world: World) -> None:
    """Whatever comes of its continuation, the ended run stays what it was."""
    ended = await _ended(world)
    before, response = await ended.state(), await ended.response()
    run = await _continue(world, ended)
    await run.review("approve")
    await run.response()
    assert (before, response) == (await ended.state(), await ended.response())


async def test_a_continuation_can_be_continued(world: World) -> None:
    """Version and evidence are carried on from run to run."""
    first = await _ended(world)
    second = await _continue(world, first, final("owners-api"))
    await second.review("reject")
    await second.response()
    third = await _continue(world, second, final("owners-api"), repository=first.id)
    pending = await third.waiting_at((await second.state()).version + 3)
    assert ("bug", "component:api") == pending.labels_after
    assert (await first.state()).evidence == (await third.state()).evidence
    await third.review("approve")
    assert Status.COMPLETED is (await third.response()).status


async def test_an_edit_of_a_continuation_keeps_what_it_took_over(world: World) -> None:
    """Being edited starts the decisions over, not the version or the evidence."""
    ended = await _ended(world)
    run = await _continue(world, ended, label(operation_id="op-7"), *FROM_WHAT_IS_KNOWN)
    version = (await run.waiting()).version
    await run.signal("edit", a_request(title="The API returns 502"))
    await run.waiting_at(version + 3)
    await run.review("approve")
    response = await run.response()
    assert ("owners-api", "mutation-receipt") == response.evidence_ids


REFUSED: dict[str, tuple[dict[str, JsonValue], str]] = {
    "another workflow": ({"workflow_id": "never-was"}, "knows no such run"),
    "another run": ({"run_id": uuid.UUID(int=0).hex}, "knows no such run"),
    "an earlier version": ({"version": 3}, "ended at a later version"),
    "version zero": ({"version": 0}, "continued_from.version"),
    "no number": ({"version": "6"}, "continued_from.version"),
    "evidence of its own": ({"evidence": ["owners-api"]}, "unexpected field"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_cannot_be_continued_is_invalid_input(world: World, name: str) -> None:
    """A link that does not name an ended run of this request is refused, and says why."""
    changes, why = REFUSED[name]
    ended = await _ended(world)
    run = await _continue(world, ended, continued_from=await _link(ended, **changes))
    response = await run.response()
    assert ("failed", "invalid_input") == outcome(response)
    assert why in response.reason
    assert () == (await run.state()).evidence


@pytest.mark.parametrize("changed", ["request", "tenant"])
async def test_no_evidence_crosses_requests_or_tenants(world: World, changed: str) -> None:
    """What one request's run was told cannot be cited in another's, nor by another tenant."""
    ended = await _ended(world)
    other = a_request(request_id="ISSUE-2") if changed == "request" else a_request()
    context = {"repository": ended.id, **({"tenant": "other"} if changed == "tenant" else {})}
    run = await world.start(
        *FROM_WHAT_IS_KNOWN, request=other, context=context, continued_from=await _link(ended)
    )
    response = await run.response()
    assert ("failed", "invalid_input") == outcome(response)
    assert () == (await run.state()).evidence


async def test_expired_content_is_not_continued(world: World) -> None:
    """Once the ended run's content has expired nothing can be taken over, and that is said."""
    async with altered_world(
        world, services=replace(world.services, retention=timedelta(seconds=-1))
    ) as forgetful:
        ended = await forgetful.start(label())
        await ended.response()
        link = await _link(ended)
    run = await _continue(world, ended, continued_from=link)
    response = await run.response()
    assert ("failed", "invalid_input") == outcome(response)
    assert "has expired" in response.reason


async def test_evidence_is_copied_with_its_expiry(world: World) -> None:
    """A continuation does not make content live longer, and what is gone is gone in the copy."""
    ended = await _ended(world)
    run = await _continue(world, ended)
    version = (await run.waiting()).version
    await run.handle.terminate()
    originals, copies = [
        await world.services.evidence.load(_scope(one), before_version=version)
        for one in (ended, run)
    ]
    assert 1 == len(copies)
    assert [replace(row, scope=_scope(run)) for row in originals] == copies


def _scope(run: Run) -> str:
    return short_hash("default", run.id, run.handle.first_execution_run_id or "")


async def test_inherited_evidence_knows_which_path_it_is_about(world: World) -> None:
    """Where answers must be entailed, what was read before counts for a named path alone."""
    for path, ends in (
        ("backend/api.py", (Status.COMPLETED, None)),
        ("docs/other.md", (Status.REVIEW_REQUIRED, "final_output_invalid")),
    ):
        ended = await world.start(lookup(path), hand_over())
        assert Status.REVIEW_REQUIRED is (await ended.response()).status
        [known] = (await ended.state()).evidence
        owner = "backend-team" if known.id == "owners-api" else "triage-team"
        run = await world.start(
            final(known.id, owner=owner),
            grounding="entailed",
            context={"repository": ended.id},
            continued_from=await _link(ended),
        )
        assert ends == outcome(await run.response())
