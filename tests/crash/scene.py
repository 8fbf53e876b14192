"""One run that is disturbed, and everything that must be as if it had not been.

A cell of the crash matrix has a queue and a database of its own on a shared server, so that all
cells can run side by side.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import select
from temporalio.client import Client, WorkflowHandle

from tests.crash.nursery import SENDS, Pause, Process
from tests.crash.paused_worker import KILL
from tests.workflow.decisions import ISSUE, a_request
from triage.contracts.names import ISSUE_TRIAGE, SIGNAL_APPROVE
from triage.contracts.response import TriageResponse
from triage.contracts.search_attributes import TRIAGE_WAITING_SINCE
from triage.contracts.state import DecisionView, StateView
from triage.settings import Role, Settings, as_environment, process_environment
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.migrate import upgrade
from triage.storage.schema import evidence
from triage.storage.transitions import OperationState
from triage.trackers.local import LocalTracker
from triage.trackers.local_people import IssueRecord

Answer = TypeVar("Answer")
Handle = WorkflowHandle[Any, TriageResponse]

SECONDS: Final = 100.0
"""How long anything may take before a cell gives up on it."""

LOOK_EVERY_SECONDS: Final = 0.3
"""How often a cell asks whether its run waits: twenty of them ask one server."""

LEASE_SECONDS: Final = 8.0
"""Longer than a write may take here, shorter than the ten seconds after which a lost one shows."""

BOTH_ROLES: Final = tuple(Role)
STARTING: Final = asyncio.Semaphore(4)
"""How many workers start at once: more would only wait for the processors."""

DONE: Final = frozenset({OperationState.APPLIED, OperationState.RECONCILED_APPLIED})
APPROVAL: Final = {"operation_id": "op-6", "version": 6, "approver": "maintainer"}


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a run did and left behind; equal for every run that was not changed by a disturbance.

    Attributes:
        response: what it answered.
        version: how many transitions it made.
        decisions: which decisions it acted on.
        evidence: version, id and tool of each row in the store, and the digest of what was read.
        operations: id, version, labels and whether it is done, of each row in the ledger.
        events: what happened to the issue's labels, in the tracker's own log.
        sends: each call to the tracker that adds labels, and whether it committed any.
        findings: what is wrong with the audit chain.
    """

    response: TriageResponse
    version: int
    decisions: tuple[DecisionView, ...]
    evidence: list[tuple[int, str, str, str]]
    operations: list[tuple[str, int, tuple[str, ...], bool]]
    events: list[tuple[str, str | None]]
    sends: list[str]
    findings: list[str]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A queue, a database and a run on a shared server."""

    name: str
    client: Client
    settings: Settings
    connection: Mapping[str, str]

    async def worker(
        self, place: str | None = None, action: str = KILL, roles: tuple[Role, ...] = BOTH_ROLES
    ) -> Process:
        """Start a worker, which stops at `place` if one is given, and wait until it polls."""
        home = self.settings.home
        pause = Pause(place=place, action=action, mark=home / "reached") if place else None
        settings = self.settings.model_copy(update={"roles": roles})
        environment = process_environment() | as_environment(settings) | dict(self.connection)
        async with STARTING:
            log = home / f"worker-{len(list(home.glob('*.log'))) + 1}.log"
            process = Process(environment, log, pause)
            await process.ready()
        return process

    async def start(self, issue: str = ISSUE) -> Handle:
        """Start a run: one read, a final answer, and its labels, which a person approves."""
        return await self.client.start_workflow(
            ISSUE_TRIAGE,
            args=[a_request(request_id=issue), {"mode": "approve"}],
            id=f"{self.name}/{issue}",
            task_queue=self.settings.task_queue,
            result_type=TriageResponse,
        )

    async def approve(self, handle: Handle) -> None:
        """Approve once the run waits."""
        await self.waiting(handle)
        await handle.signal(SIGNAL_APPROVE, APPROVAL)

    async def waiting(self, handle: Handle) -> None:
        """Return once the run waits for a person; the server tells, with or without a worker."""
        async with asyncio.timeout(SECONDS):
            while True:
                found = (await handle.describe()).typed_search_attributes
                if found.get(TRIAGE_WAITING_SINCE) is not None:
                    return
                await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def dies(self, worker: Process, handle: WorkflowHandle[Any, Any]) -> None:
        """Return once a worker has killed itself; the run must not end before."""
        death = asyncio.create_task(worker.ended())
        end = asyncio.create_task(self.answer(handle))
        await asyncio.wait({death, end}, return_when=asyncio.FIRST_COMPLETED)
        assert death.done(), f"{self.name} was never reached: {end.result()}"
        end.cancel()
        assert -signal.SIGKILL == death.result(), self.log()

    def _sends(self) -> list[str]:
        """Return what forked workers logged of their calls to the tracker."""
        log = self.settings.home / SENDS
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def log(self) -> str:
        """Return the last lines that the cell's workers wrote."""
        logs = sorted(self.settings.home.glob("*.log"))
        return "\n".join(log.read_text(encoding="utf-8")[-2_000:] for log in logs)

    async def undisturbed(self) -> Record:
        """Play a run that nothing happens to."""
        worker = await self.worker()
        handle = await self.start()
        await self.approve(handle)
        record = await self.record(handle)
        await worker.kill()
        return record

    async def answer(self, handle: WorkflowHandle[Any, Answer]) -> Answer:
        """Return what a run answers, or show what its workers said if it does not."""
        try:
            async with asyncio.timeout(SECONDS):
                return await handle.result()
        except TimeoutError:
            raise AssertionError(f"{self.name} does not end:\n{self.log()}") from None

    async def record(self, handle: Handle) -> Record:
        """Collect what the run did; a worker has to be there to answer the query."""
        response = await self.answer(handle)
        state = await handle.query("state", result_type=StateView)
        store = await Store.open(self.settings.database_url)
        try:
            operations = await Ledger(store).list(workflow_id=handle.id)
            issue = await LocalTracker(store).show_issue("local", response.request_id)
            findings = await verify(store)
            rows = await evidence_of(store, {operation.scope for operation in operations})
        finally:
            await store.close()
        assert isinstance(issue, IssueRecord), "the issue was never registered"
        return Record(
            response=response,
            version=state.version,
            decisions=state.decisions,
            evidence=rows,
            operations=[(o.operation_id, o.version, o.labels, o.state in DONE) for o in operations],
            events=[(event.action, event.label) for event in issue.events if event.label],
            sends=self._sends(),
            findings=[str(finding) for finding in findings],
        )


def opened_cell(
    name: str,
    client: Client,
    connection: Mapping[str, str],
    template: Path,
    database_url: str | None = None,
) -> Cell:
    """Give a run a folder, a queue and a database: a copy of the empty one if no other is given."""
    home = template.parent / re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    home.mkdir()
    if database_url is None:
        database_url = f"sqlite+aiosqlite:///{shutil.copy(template, home / 'triage.db')}"
    settings = Settings(
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
    return Cell(name=name, client=client, settings=settings, connection=connection)


async def make_template(folder: Path) -> Path:
    """Create an empty database of today's schema, to be copied."""
    path = folder / "template.db"
    await upgrade(f"sqlite+aiosqlite:///{path}")
    return path


async def evidence_of(store: Store, scopes: set[str]) -> list[tuple[int, str, str, str]]:
    """Return the rows that runs left in the evidence store, without the digests of receipts.

    A receipt says how the write was seen, which a disturbance may change.
    """
    e = evidence.c
    query = select(e.version, e.evidence_id, e.tool, e.digest).where(e.scope.in_(scopes))
    async with store.read() as connection:
        rows = (await connection.execute(query.order_by(e.version))).all()
    return [
        (v, name, tool, "" if tool == "apply_labels" else digest) for v, name, tool, digest in rows
    ]
