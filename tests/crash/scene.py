"""One run that is disturbed: its workers, its database, its tracker, and the person who approves.

A cell of the crash matrix has a queue, a database and a tracker of its own on a shared server, so
that all cells can run side by side.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from temporalio.client import Client, WorkflowHandle

from tests.crash.nursery import Job, Process
from tests.crash.places import Action, Pause, Place
from tests.crash.records import Record, Witness
from tests.crash.scenarios import (
    APPROVER,
    KEYRING,
    PLAIN,
    REPOSITORY,
    Scenario,
    make_key,
    set_the_scene,
    signed_review,
)
from tests.fakes.control import TrackerControl
from tests.fakes.tracker import serving
from tests.workflow.decisions import ISSUE, a_request
from triage.contracts.names import ISSUE_TRIAGE, QUERY_PENDING, QUERY_STATE, SIGNAL_APPROVE
from triage.contracts.response import TriageResponse
from triage.contracts.search_attributes import TRIAGE_WAITING_SINCE
from triage.contracts.state import PendingView, StateView
from triage.settings import Role, Settings, as_environment, process_environment
from triage.signing.keys import SigningKey
from triage.storage.migrate import upgrade

Answer = TypeVar("Answer")
Handle = WorkflowHandle[Any, TriageResponse]

SECONDS: Final = 240.0
"""How long anything may take before a cell gives up on it: a write that was tried often is tried
again only after a minute, and perhaps by the frozen worker."""

LOOK_EVERY_SECONDS: Final = 0.5
"""How often a cell asks whether its run waits: dozens of them ask one server."""

LEASE_SECONDS: Final = 8.0
"""Longer than a write may take here, shorter than the ten seconds after which a lost one shows."""

BOTH_ROLES: Final = tuple(Role)
STARTING: Final = asyncio.Semaphore(4)
"""How many processes start at once: more would only wait for the processors."""

APPROVAL: Final = {"operation_id": "op-6", "version": 6, "approver": APPROVER}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A queue, a database, a tracker and a run on a shared server.

    Attributes:
        name: what is done to it.
        client: of the server.
        settings: those of its workers.
        connection: variables with which they reach the server.
        commits: the tracker's log.
        scenario: what is different in its run.
        tracker: the hand on its tracker; None where writes go to the local one.
        key: the approver's, where approvals must be signed.
    """

    name: str
    client: Client
    settings: Settings
    connection: Mapping[str, str]
    commits: Path
    scenario: Scenario = PLAIN
    tracker: TrackerControl | None = None
    key: SigningKey | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What its processes are told."""
        return process_environment() | as_environment(self.settings) | dict(self.connection)

    async def worker(
        self,
        place: Place | None = None,
        action: Action = Action.KILL,
        roles: tuple[Role, ...] = BOTH_ROLES,
    ) -> Process:
        """Start a worker, which stops at `place` if one is given, and wait until it polls."""
        part = replace(self, settings=self.settings.model_copy(update={"roles": roles}))
        async with STARTING:
            process = Process(part.job(place, action))
            assert await process.ready(), self.log()
        return process

    def job(self, place: Place | None, action: Action, command: tuple[str, ...] = ()) -> Job:
        """Say what a process of this cell does."""
        home = self.settings.home
        number = len(list(home.glob("*.log"))) + 1
        log = home / f"process-{number}.log"
        log.touch()
        mark = home / f"reached-{number}"
        return Job(
            environment=self.environment,
            log=log,
            tracker=self.tracker.api if self.tracker else "",
            pause=Pause(place=place, action=action, mark=mark) if place else None,
            command=command,
        )

    async def start(self, issue: str = ISSUE) -> Handle:
        """Start a run: one read, a final answer, and its labels, which a person approves."""
        context = {"repository": REPOSITORY} if self.tracker else {}
        options: dict[str, Any] = {"mode": "approve", "context": context}
        if self.scenario.bounded:
            options["budget"] = {"seconds": 86_400}
        return await self.client.start_workflow(
            ISSUE_TRIAGE,
            args=[a_request(request_id=issue), options],
            id=f"{self.name}/{issue}",
            task_queue=self.settings.task_queue,
            result_type=TriageResponse,
        )

    async def approve(self, handle: Handle) -> None:
        """Approve once the run waits."""
        await self.waiting(handle)
        if self.scenario.edited and self.tracker:
            await self.tracker.edit(REPOSITORY, ISSUE, body="Since yesterday.")
        await handle.signal(SIGNAL_APPROVE, await self._review(handle))

    async def _review(self, handle: Handle) -> dict[str, Any]:
        if self.key is None:
            return APPROVAL
        pending = await handle.query(QUERY_PENDING, result_type=PendingView)
        return signed_review(handle.id, pending, self.key)

    async def waiting(self, handle: Handle) -> None:
        """Return once the run waits for a person; the server tells, with or without a worker."""
        async with asyncio.timeout(SECONDS):
            while True:
                found = (await handle.describe()).typed_search_attributes
                if found.get(TRIAGE_WAITING_SINCE) is not None:
                    return
                await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def dies(self, process: Process, handle: WorkflowHandle[Any, Any]) -> None:
        """Return once a process has killed itself; the run must not end before."""
        death = asyncio.create_task(process.ended())
        await self._first(death, handle)
        assert -signal.SIGKILL == death.result(), self.log()

    async def freezes(self, process: Process, handle: WorkflowHandle[Any, Any]) -> None:
        """Return once a process has frozen itself; the run must not end before."""
        await self._first(asyncio.create_task(process.frozen()), handle)

    async def _first(self, event: asyncio.Task[Any], handle: WorkflowHandle[Any, Any]) -> None:
        end = asyncio.create_task(self.answer(handle))
        await asyncio.wait({event, end}, return_when=asyncio.FIRST_COMPLETED)
        if not event.done():
            event.cancel()
            raise AssertionError(f"{self.name} was never reached: {end.result()}")
        end.cancel()

    def log(self) -> str:
        """Return the last lines that the cell's processes wrote."""
        logs = sorted(self.settings.home.glob("*.log"))
        return "\n".join(log.read_text(encoding="utf-8")[-2_000:] for log in logs)

    async def answer(self, handle: WorkflowHandle[Any, Answer]) -> Answer:
        """Return what a run answers, or show what its workers said if it does not."""
        try:
            async with asyncio.timeout(SECONDS):
                return await handle.result()
        except TimeoutError:
            raise AssertionError(f"{self.name} does not end:\n{self.log()}") from None

    async def record(self, handle: Handle, *, allow_repeats: bool = False) -> Record:
        """Collect what the run did; a worker has to be there to answer the query."""
        response = await self.answer(handle)
        view = await handle.query(QUERY_STATE, result_type=StateView)
        witness = self.witness(handle.id, response.request_id, allow_repeats=allow_repeats)
        return await witness.record(response, view)

    async def posts(self) -> int:
        """How many requests that write came in at the tracker."""
        return len(await self.tracker.requests("POST")) if self.tracker else 0

    def witness(
        self, workflow_id: str, issue: str = ISSUE, *, allow_repeats: bool = False
    ) -> Witness:
        """Say where the truth about a run of this cell is kept."""
        return Witness(
            database_url=self.settings.database_url,
            commits=self.commits,
            tracker=self.tracker,
            workflow_id=workflow_id,
            issue=issue,
            allow_repeats=allow_repeats,
        )


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What cells share: a server, and a folder with an empty database in it."""

    client: Client
    connection: Mapping[str, str]
    template: Path

    @asynccontextmanager
    async def cell(
        self, name: str, scenario: Scenario = PLAIN, database_url: str | None = None
    ) -> AsyncIterator[Cell]:
        """Open a cell whose writes go over HTTP, on a copy of the empty database by default."""
        cell = self.local_cell(name, database_url)
        async with serving(cell.commits) as running:
            tracker = TrackerControl(running.api.address, running.control.address)
            await set_the_scene(scenario, tracker)
            cell = replace(cell, tracker=tracker, scenario=scenario)
            yield _signing(cell) if scenario.signed else cell

    def local_cell(self, name: str, database_url: str | None = None) -> Cell:
        """Open a cell whose writes go to the local tracker."""
        home = self.template.parent / re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        home.mkdir()
        if database_url is None:
            database_url = f"sqlite:///{shutil.copy(self.template, home / 'triage.db')}"
        return Cell(
            name=name,
            client=self.client,
            settings=_settings(home, database_url),
            connection=self.connection,
            commits=home / "commits.jsonl",
        )


def _signing(cell: Cell) -> Cell:
    home = cell.settings.home
    change = {"local_trust": False, "keyring": home / KEYRING}
    return replace(cell, settings=cell.settings.model_copy(update=change), key=make_key(home))


def _settings(home: Path, database_url: str) -> Settings:
    return Settings(
        home=home,
        database_url=database_url,
        task_queue=home.name,
        local_trust=True,
        model="rules",
        tracker="local",
        lease_seconds=LEASE_SECONDS,
        quiet_period_seconds=LEASE_SECONDS,
        sticky_timeout_seconds=1,
        shutdown_grace_seconds=1,
    )


async def make_template(folder: Path) -> Path:
    """Create an empty database of today's schema, to be copied."""
    path = folder / "template.db"
    await upgrade(f"sqlite:///{path}")
    return path
