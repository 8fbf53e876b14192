"""A desk at which maintainers answer runs by comments, on a GitHub that is a real server."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import JsonValue, SecretStr
from sqlalchemy import delete, select
from temporalio.client import Client

from tests.fakes.commit_log import Action
from tests.fakes.github import GitHub, serving_github
from tests.fakes.github_shapes import number_of
from tests.fixed_rules import FixedRules
from tests.workflow.decisions import final, lookup
from tests.workflow.runs import Run
from tests.workflow.world import World, altered_world
from triage.contracts.approval import Verdict
from triage.contracts.state import PendingView
from triage.ingest.answers import Answering
from triage.settings import Settings
from triage.signing.files import KeyringFile
from triage.signing.keys import Keyring, new_key, signing_key
from triage.storage.admission import Admission, Content, Delivery, Subject
from triage.storage.approvals import Approvals
from triage.storage.commands import Command, Commands
from triage.storage.ledger import Ledger
from triage.storage.outbox import Outbox
from triage.storage.schema_intake import commands
from triage.trackers.github_setup import open_github

REPOSITORY = "acme/shop"
NUMBERS = count(100)
RIGHTS = {
    "octocat": ("maintain", "write"),
    "boss": ("admin", "admin"),
    "triager": ("triage", "read"),
    "eve": ("admin", "admin"),
    "writer": ("admin", "admin"),
}


def next_number() -> str:
    """Return the number of an issue that nobody has opened yet."""
    return str(next(NUMBERS))


@dataclass
class Desk:
    """Runs on GitHub that only signed approvals move, and the part that signs for commenters."""

    world: World
    github: GitHub
    answering: Answering

    async def waiting(
        self, *script: JsonValue, number: str | None = None
    ) -> tuple[Run, PendingView, Subject]:
        """Open an issue, as if a delivery had, and return its run once it waits."""
        number = number or next_number()
        await self.github.control.open_issue(REPOSITORY, number, title="Crash", author="eve")
        subject = Subject(
            tenant="default",
            source="github",
            repository=REPOSITORY,
            repository_id=str(number_of(REPOSITORY)),
            number=number,
        )
        context = {"repository": REPOSITORY, "issue": number}
        script = script or (lookup(), final("owners-api"))
        run = await self.world.start(*script, context=context, mode="approve")
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
            comment_id=f"comment-{next(NUMBERS)}",
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
        return (await self.outcomes(subject))[-1]

    async def outcomes(self, subject: Subject) -> list[str]:
        """What became of each answer on an issue: its state, or why it was refused."""
        c = commands.c
        query = select(c.state, c.code).where(c.number == subject.number).order_by(c.created_at)
        async with self.world.services.store.read() as connection:
            found = (await connection.execute(query)).all()
        return [code if state == "refused" else state for state, code in found]

    async def written(self) -> list[str | None]:
        """The labels that operations put on."""
        log = await self.github.control.log()
        return [e.label for e in log if e.action is Action.LABELED and e.operation]


@asynccontextmanager
async def opened_desk(
    world: World, folder: Path, rules: FixedRules | None = None
) -> AsyncIterator[Desk]:
    """Open GitHub, a keyring with one service that may vouch, and no key of anybody's own."""
    ring = KeyringFile(folder / "keyring.json")
    began = datetime.now(UTC) - timedelta(minutes=1)
    private, entry = new_key("triage-serve", began, vouches_for=("github",))
    ring.change(lambda _: Keyring.of([entry]))
    async with serving_github(folder / "commits.jsonl") as github:
        await github.control.define_labels(REPOSITORY, ["bug", "component:api"])
        github.api.people.rights |= {(REPOSITORY, who): right for who, right in RIGHTS.items()}
        tracker = open_github(_settings(github))
        services = replace(
            world.services,
            local_trust=False,
            keyring=ring,
            trackers={"github": tracker},
            default_tracker="github",
            rules=rules or world.services.rules,
            ledger=Ledger(world.services.store, lease_seconds=30, quiet_period_seconds=0.2),
        )
        async with altered_world(world, services=services) as opened:

            async def connect() -> Client:
                return opened.client

            answering = Answering(
                commands=Commands(services.store),
                approvals=Approvals(services.store),
                documents=services.documents,
                connect=connect,
                tracker=tracker,
                tracker_name="github",
                key=signing_key(private),
                refusals=Counter(),
            )
            yield Desk(opened, github, answering)
            # The next desk's runs are carried by workers of its own.
            async with services.store.write() as connection:
                await connection.execute(delete(commands))


def _settings(github: GitHub) -> Settings:
    return Settings(
        tracker="github",
        github_base_url=github.control.api,
        github_token=SecretStr("reader"),
        github_write_token=SecretStr("writer"),
    )
