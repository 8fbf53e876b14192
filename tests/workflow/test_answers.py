"""A comment decides on a run's operation: by whoever may, once, and never by anybody else."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import select
from temporalio.client import Client

from tests.fakes.commit_log import Action
from tests.fakes.faults import refused
from tests.fakes.github import GitHub, serving_github
from tests.fakes.github_shapes import number_of
from tests.workflow.decisions import final, lookup
from tests.workflow.runs import Run
from tests.workflow.world import World, altered_world
from triage.connection import ServerUnreachable
from triage.contracts.approval import Verdict
from triage.contracts.response import Status
from triage.contracts.state import PendingView
from triage.ingest.answers import Answering
from triage.settings import Settings
from triage.signing.files import KeyringFile
from triage.signing.keys import Keyring, new_key, signing_key
from triage.storage.admission import Admission, Content, Delivery, Subject
from triage.storage.commands import Command, Commands
from triage.storage.ledger import Ledger
from triage.storage.outbox import Outbox
from triage.storage.schema_intake import commands
from triage.trackers.github_setup import open_github
from triage.web.flood import Flood

REPOSITORY = "acme/shop"
NUMBERS = count(100)
RIGHTS = {
    "octocat": ("maintain", "write"),
    "triager": ("triage", "read"),
    "eve": ("admin", "admin"),
    "writer": ("admin", "admin"),
}


@dataclass
class Desk:
    """Runs on GitHub that only signed approvals move, and the part that signs for commenters."""

    world: World
    github: GitHub
    answering: Answering

    async def waiting(self) -> tuple[Run, PendingView, Subject]:
        """Open an issue, as if a delivery had, and return its run once it waits."""
        number = str(next(NUMBERS))
        await self.github.control.open_issue(REPOSITORY, number, title="Crash", author="eve")
        subject = Subject(
            tenant="default",
            source="github",
            repository=REPOSITORY,
            repository_id=str(number_of(REPOSITORY)),
            number=number,
        )
        context = {"repository": REPOSITORY, "issue": number}
        run = await self.world.start(lookup(), final("owners-api"), context=context, mode="approve")
        store = self.world.services.store
        delivery = Delivery(
            delivery_id=f"d{number}", event="issues", action="opened", body_digest=number
        )
        content = Content(digest=number, at=datetime.now(UTC), document=b"{}")
        await Admission(store, timedelta(days=1)).admit(delivery, subject, content)
        held = await Outbox(store).take()
        assert held is not None
        assert await Outbox(store).started(held, run.id, None)
        return run, await run.waiting(), subject

    async def says(
        self,
        subject: Subject,
        pending: PendingView,
        login: str = "octocat",
        **changes: Any,  # noqa: ANN401 - any field
    ) -> None:
        """Let somebody answer in a comment, and carry it on."""
        said = Command(
            comment_id=f"{subject.number}-{login}-{changes}",
            person_id=str(number_of(login)),
            login=login,
            operation_id=pending.operation_id,
            version=pending.version,
            verdict=Verdict.APPROVE,
            said_at=datetime.now(UTC),
        )
        delivery = Delivery(
            delivery_id=said.comment_id, event="issue_comment", action="created", body_digest="x"
        )
        commands = self.answering.commands
        await commands.admit(delivery, subject, replace(said, **changes))
        await self.answering.carry_all()

    async def became(self, subject: Subject) -> str:
        """What became of the last answer on an issue."""
        c = commands.c
        query = select(c.state).where(c.number == subject.number).order_by(c.created_at.desc())
        async with self.world.services.store.read() as connection:
            return str(await connection.scalar(query.limit(1)))

    async def written(self) -> list[str | None]:
        """The labels that operations put on."""
        log = await self.github.control.log()
        return [e.label for e in log if e.action is Action.LABELED and e.operation]


@pytest.fixture
async def desk(world: World, tmp_path: Path) -> AsyncIterator[Desk]:
    """GitHub, a keyring with one service that may vouch, and nobody with a key of their own."""
    ring = KeyringFile(tmp_path / "keyring.json")
    began = datetime.now(UTC) - timedelta(minutes=1)
    private, entry = new_key("triage-serve", began, vouches_for=("github",))
    ring.change(lambda _: Keyring.of([entry]))
    async with serving_github(tmp_path / "commits.jsonl") as github:
        await github.control.define_labels(REPOSITORY, ["bug", "component:api"])
        github.api.people.rights |= {(REPOSITORY, who): right for who, right in RIGHTS.items()}
        settings = Settings(
            tracker="github",
            github_base_url=github.control.api,
            github_token=SecretStr("reader"),
            github_write_token=SecretStr("writer"),
        )
        tracker = open_github(settings)
        services = replace(
            world.services,
            local_trust=False,
            keyring=ring,
            trackers={"github": tracker},
            default_tracker="github",
            ledger=Ledger(world.services.store, lease_seconds=30, quiet_period_seconds=0.2),
        )
        async with altered_world(world, services=services) as opened:

            async def connect() -> Client:
                return opened.client

            answering = Answering(
                commands=Commands(services.store),
                documents=services.documents,
                connect=connect,
                tracker=tracker,
                tracker_name="github",
                key=signing_key(private),
                refusals=Counter(),
            )
            yield Desk(opened, github, answering)


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
    # The run itself knows the issue's author, whatever rights they have.
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
