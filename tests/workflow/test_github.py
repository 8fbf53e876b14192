"""Whole runs on issues of GitHub: proposed, approved, written once, and seen there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.fakes.commit_log import Action
from tests.fakes.faults import fails_after, refused
from tests.fakes.github import GitHub, serving_github
from tests.fakes.invariants import check_invariants
from tests.workflow.decisions import final, lookup
from tests.workflow.runs import Run, outcome, refusal_of
from tests.workflow.world import World, altered_world
from triage.contracts.response import Status
from triage.settings import Settings
from triage.storage.ledger import Ledger
from triage.storage.operations import OperationRecord
from triage.trackers.github_setup import open_github

REPOSITORY = "acme/shop"
NUMBER = "101"
LABELS = ("bug", "component:api", "good first issue")
ISSUE = rf"/issues/{NUMBER}$"


@dataclass
class OnGitHub:
    """A worker whose issues are on GitHub, with a ledger that waits for moments only."""

    world: World
    github: GitHub

    async def run(self, **options: Any) -> Run:  # noqa: ANN401 - any options
        """Start a run that proposes two labels, on the one issue."""
        context = {"repository": REPOSITORY, "issue": NUMBER}
        script = [lookup(), final("owners-api")]
        return await self.world.start(*script, context=context, mode="approve", **options)

    async def operation(self, run: Run) -> OperationRecord:
        """The ledger's row of the run's one write."""
        [record] = await self.world.services.ledger.list(workflow_id=run.id)
        return record

    async def written(self) -> list[str | None]:
        """The labels that were put on for an operation, in the order of their commits."""
        log = await self.github.control.log()
        return [e.label for e in log if e.action is Action.LABELED and e.operation]


@pytest.fixture
async def on_github(world: World, tmp_path: Path) -> AsyncIterator[OnGitHub]:
    """GitHub with one issue, and the production tracker as the settings give it."""
    async with serving_github(tmp_path / "commits.jsonl") as github:
        await github.control.define_labels(REPOSITORY, LABELS)
        await github.control.open_issue(REPOSITORY, NUMBER, title="Crash", author="eve")
        settings = Settings(
            tracker="github",
            github_base_url=github.control.api,
            github_token=SecretStr("reader"),
            github_write_token=SecretStr("writer"),
        )
        services = replace(
            world.services,
            trackers={"github": open_github(settings)},
            default_tracker="github",
            ledger=Ledger(world.services.store, lease_seconds=30, quiet_period_seconds=0.2),
        )
        async with altered_world(world, services=services) as opened:
            yield OnGitHub(opened, github)


async def test_an_approved_proposal_is_on_the_issue(on_github: OnGitHub) -> None:
    """Proposed, shown to a person, approved, put on by the token that writes, seen, receipted."""
    await on_github.github.control.add_label(REPOSITORY, NUMBER, "good first issue")
    run = await on_github.run()
    pending = await run.waiting()
    assert {"tracker": "github", "repository": REPOSITORY, "issue": NUMBER} == pending.target
    assert ("good first issue",) == tuple(pending.labels_before)
    assert set(LABELS) == set(pending.labels_after)
    assert [] == await on_github.github.control.requests("POST")
    assert (await run.review("approve")).accepted
    response = await run.response()
    assert (Status.COMPLETED, ("bug", "component:api")) == (response.status, response.labels)
    assert ["bug", "component:api"] == await on_github.written()
    record = await on_github.operation(run)
    assert record.receipt is not None
    receipt = json.loads(record.receipt)
    assert ("applied_by_us", ["good first issue"], sorted(LABELS)) == (
        receipt["how"],
        receipt["before"],
        receipt["after"],
    )
    by = {h["authorization"] for h in on_github.github.api.seen if "x-operation-key" in h}
    assert {"token writer"} == by


async def test_an_error_after_the_commit_is_no_second_write(on_github: OnGitHub) -> None:
    """GitHub wrote and answered 502: the run reads the labels back and completes."""
    await on_github.github.control.plan(fails_after(502, times=0))
    run = await on_github.run()
    assert (await run.review("approve")).accepted
    assert Status.COMPLETED is (await run.response()).status
    assert 1 == len(await on_github.github.control.requests("POST"))
    assert ["bug", "component:api"] == await on_github.written()
    record = await on_github.operation(run)
    assert record.receipt is not None
    assert "readback" == json.loads(record.receipt)["how"]
    found = await check_invariants(on_github.world.services.store, on_github.github.log)
    key = record.operation_key
    assert [] == [breach for breach in found if key in breach]


async def test_the_issue_s_author_does_not_decide(on_github: OnGitHub) -> None:
    """Who wrote it is what GitHub says, in any letter case, whatever the request says."""
    run = await on_github.run()
    assert "unauthorised" == await refusal_of(run.review("approve", approver="Eve"))
    assert [] == await on_github.written()
    assert (await run.review("reject")).accepted


async def test_an_edit_on_github_voids_the_approval(on_github: OnGitHub) -> None:
    """What was approved is not what the issue says now: nothing is written."""
    run = await on_github.run()
    await run.waiting()
    await on_github.github.control.edit(REPOSITORY, NUMBER, body="Something else.")
    assert (await run.review("approve")).accepted
    assert (Status.REVIEW_REQUIRED, "state_conflict") == outcome(await run.response())
    assert [] == await on_github.github.control.requests("POST")


async def test_an_issue_that_is_not_there_starts_no_run(on_github: OnGitHub) -> None:
    """A number that GitHub does not have, or that is a pull request's, is invalid input."""
    context = {"repository": REPOSITORY, "issue": "999"}
    run = await on_github.world.start(lookup(), final("owners-api"), context=context)
    assert (Status.FAILED, "invalid_input") == outcome(await run.response())


async def test_a_transfer_while_a_person_decides_ends_the_run(on_github: OnGitHub) -> None:
    """The issue is somewhere else now, and is followed neither by reads nor by the write."""
    run = await on_github.run()
    await run.waiting()
    await on_github.github.control.transfer(REPOSITORY, NUMBER, "/repos/acme/other/issues/1")
    assert (await run.review("approve")).accepted
    assert (Status.REVIEW_REQUIRED, "tool_error") == outcome(await run.response())
    assert not [r for r in await on_github.github.control.requests() if "other" in r["path"]]


async def test_a_busy_github_delays_the_start_alone(on_github: OnGitHub) -> None:
    """An error of the server at the first look is asked again, and the run goes on."""
    await on_github.github.control.plan(refused(503, method="GET", path=ISSUE, times=2))
    run = await on_github.run()
    assert (await run.review("reject")).accepted
    assert [503, 503, 200] == [
        request["status"] for request in await on_github.github.control.requests("GET")
    ][:3]
