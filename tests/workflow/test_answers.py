"""A comment decides on a run's operation: by whoever may, once, and never by anybody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update
from temporalio.client import Client

from tests.fakes.faults import refused
from tests.workflow.answering import Desk, opened_desk
from tests.workflow.world import World
from triage.connection import ServerUnreachable
from triage.contracts.approval import Verdict
from triage.contracts.response import Status
from triage.storage.outbox import Outbox
from triage.storage.schema import requests
from triage.web.flood import Flood


@pytest.fixture
async def desk(world: World, tmp_path: Path) -> AsyncIterator[Desk]:
    """GitHub, and a run's question to whoever may answer there."""
    async with opened_desk(world, tmp_path) as opened:
        yield opened


async def test_a_maintainer_s_comment_writes_once(desk: Desk) -> None:
    """Said twice, it counts once: the labels are on the issue, by the token that writes."""
    run, pending, subject = await desk.waiting()
    await desk.says(subject, pending)
    response = await run.response()
    assert (Status.COMPLETED, ("bug", "component:api")) == (response.status, response.labels)
    assert ["bug", "component:api"] == await desk.written()
    await desk.says(subject, pending, comment_id=f"{subject.number}-again")
    assert {"not_pending": 1} == desk.answering.refusals


async def test_who_may_not_and_what_is_not_asked_is_refused_by_its_code(desk: Desk) -> None:
    """Nothing of it reaches the run, each refusal is recorded, and a good answer still counts."""
    run, pending, subject = await desk.waiting()
    await desk.says(subject, pending, "stranger")
    await desk.says(subject, pending, "triager")
    await desk.says(subject, pending, "writer")
    await desk.says(subject, pending, person_id="1")
    await desk.says(subject, pending, operation_id="op-1")
    await desk.says(subject, pending, version=pending.version + 1)
    await desk.says(subject, pending, said_at=datetime.now(UTC) - timedelta(minutes=5))
    await desk.says(subject, pending, said_at=datetime.now(UTC) - timedelta(hours=2))
    await desk.says(replace(subject, number="9"), pending)
    assert {
        "unauthorised": 4,
        "not_pending": 1,
        "stale_version": 1,
        "early": 1,
        "old": 1,
        "no_run": 1,
    } == desk.answering.refusals
    counts = await desk.answering.commands.counts()
    assert 9 <= sum(number for name, number in counts.items() if name.startswith("refused/"))
    assert 0 == (await run.state()).refusals_total
    # The run itself knows the author, whatever rights they have.
    await desk.says(subject, pending, "eve")
    assert 5 == desk.answering.refusals["unauthorised"]
    await desk.says(subject, pending, verdict=Verdict.REJECT)
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, "approval_required") == (response.status, response.failure)
    assert [] == await desk.written()


async def test_rights_that_were_lost_before_the_write_stop_it(desk: Desk) -> None:
    """The comment counted, and the write asks again: without the rights nothing is written."""
    run, pending, subject = await desk.waiting()
    # The first question is the comment's own, the second the write's.
    plan = refused(404, method="GET", path="collaborators", skip=1, times=0)
    await desk.github.control.plan(plan)
    await desk.says(subject, pending)
    assert "accepted" == await desk.became(subject)
    response = await run.response()
    assert Status.REVIEW_REQUIRED is response.status
    assert [] == await desk.written()


async def test_an_answer_waits_for_whoever_is_away(desk: Desk) -> None:
    """Neither a silent GitHub nor a server that is gone refuses anybody: it is tried again."""
    run, pending, subject = await desk.waiting()
    plan = refused(500, method="GET", path="collaborators")
    await desk.github.control.plan(plan)
    await desk.says(subject, pending)
    assert "waiting" == await desk.became(subject)

    async def away() -> Client:
        raise ServerUnreachable("nobody there")

    store = desk.world.services.store
    store._offset += timedelta(minutes=1)
    await replace(desk.answering, connect=away).carry_all()
    assert "waiting" == await desk.became(subject)
    store._offset += timedelta(minutes=1)
    await desk.answering.carry_all()
    store._offset -= timedelta(minutes=2)
    assert "accepted" == await desk.became(subject)
    assert Status.COMPLETED is (await run.response()).status


async def test_whoever_answers_again_and_again_is_asked_about_seldom(desk: Desk) -> None:
    """A stranger's orders wait, and use up nothing of what GitHub lets us ask."""
    _, pending, subject = await desk.waiting()
    desk.answering = replace(desk.answering, pace=Flood(1))
    await desk.says(subject, pending, "stranger", comment_id=f"{subject.number}-first")
    await desk.says(subject, pending, "stranger", comment_id=f"{subject.number}-second")
    assert "waiting" == await desk.became(subject)
    asked = await desk.github.control.requests("GET")
    assert 1 == len([r for r in asked if "stranger" in r["path"]])


async def test_a_comment_of_the_question_s_own_second_may_be_older_than_it(desk: Desk) -> None:
    """GitHub tells whole seconds: only what was surely said after the question answers it."""
    run, pending, subject = await desk.waiting()
    asked = datetime.fromisoformat(pending.proposed_at).replace(microsecond=0)
    await desk.says(subject, pending, said_at=asked)
    assert "early" == await desk.became(subject)
    await desk.says(subject, pending, said_at=asked + timedelta(seconds=1))
    assert Status.COMPLETED is (await run.response()).status


async def test_an_answer_waits_until_it_is_known_which_run_has_the_text(desk: Desk) -> None:
    """A process that died after it started the run left no name of it: that is no refusal."""
    run, pending, subject = await desk.waiting()
    async with desk.world.services.store.write() as connection:
        mine = requests.c.subject_key == subject.key
        unrecorded = {"state": "accepted", "workflow_id": None, "next_attempt_at": None}
        await connection.execute(update(requests).where(mine).values(**unrecorded))
    await desk.says(subject, pending)
    assert "waiting" == await desk.became(subject)
    store = desk.world.services.store
    held = await Outbox(store).take()
    assert held is not None
    await Outbox(store).started(held, run.id, None)
    store._offset += timedelta(minutes=1)
    await desk.answering.carry_all()
    store._offset -= timedelta(minutes=1)
    assert "accepted" == await desk.became(subject)
    assert Status.COMPLETED is (await run.response()).status


async def test_a_repository_in_other_letters_is_the_same(desk: Desk) -> None:
    """GitHub tells it as its owner writes it today, and the run as it was written then."""
    run, pending, subject = await desk.waiting()
    await desk.says(replace(subject, repository="Acme/Shop"), pending)
    assert "accepted" == await desk.became(subject)
    assert Status.COMPLETED is (await run.response()).status
