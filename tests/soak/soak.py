"""A soak: runs under random faults on one database, then calm, then a look at everything.

It ends by itself: runs are started until the ledger has the wanted number of operations, each is
accompanied to its end, and what does not settle within a bound after the faults is a breach.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue
from sqlalchemy import func, select
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError

from tests.fakes.control import TrackerControl
from tests.fakes.faults import Plan
from tests.fakes.tracker import FakeTracker, serving
from tests.soak.ambushes import STRUCK, Orders
from tests.soak.board import Board
from tests.soak.crew import Crew, Place
from tests.soak.databases import Database
from tests.soak.disasters import Disasters
from tests.soak.pens import Pen, cut_pen
from tests.soak.people import Approved, People, Scene
from tests.soak.plans import REPOSITORY, RunPlan, draw_run
from tests.soak.verdict import Verdict, Witness, judge
from tests.soak.weather import Weather
from tests.workflow.decisions import Script, a_request
from triage.contracts.canonical import canonical_json
from triage.contracts.names import ISSUE_TRIAGE, QUERY_STATE
from triage.contracts.response import Status, TriageResponse
from triage.contracts.state import StateView
from triage.policy.rules import BUILTIN_RULES
from triage.settings import Settings, as_environment, process_environment
from triage.storage.audit import AuditHead, heads
from triage.storage.documents import SHARED, DocumentKind, DocumentStore
from triage.storage.engine import Store
from triage.storage.errors import StorageError
from triage.storage.migrate import upgrade
from triage.storage.schema import operations
from triage.storage.transitions import SETTLED

LEASE_SECONDS: Final = 4.5
QUIET_SECONDS: Final = 7.0
SWEEP_SECONDS: Final = 1.5
FREEZE_SECONDS: Final = (LEASE_SECONDS + 0.5, QUIET_SECONDS + 3.0)
SETTLE_SECONDS: Final = 180.0
"""How long after the last fault everything may take to settle."""
AMBUSH_CHANCE: Final = 0.008
READ_FAULTS: Final = 0.06
WRITE_FAULTS: Final = 0.45
LOOK_SECONDS: Final = 1.0
HEADS_EVERY: Final = 15
TELL_EVERY: Final = 5
MAX_STEPS: Final = 8
COMMITS: Final = "commits.jsonl"
KEYRING: Final = "keyring.json"


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to soak.

    Attributes:
        seed: of everything that is drawn.
        operations: how many rows the ledger is to have.
        abreast: how many runs go on at once.
        seconds: after which the faults end, however many operations there are by then.
        folder: where everything is kept.
        signed: whether approvals count only with a signature.
        say: told of the progress.
    """

    seed: int
    operations: int
    abreast: int = 16
    seconds: float = math.inf
    folder: Path
    signed: bool = False
    say: Callable[[str], None] = print


@dataclass
class Tally:
    """What was done so far."""

    disasters: Counter[str] = field(default_factory=Counter)
    deeds: Counter[str] = field(default_factory=Counter)
    heads: list[AuditHead] = field(default_factory=list)
    approved: set[Approved] = field(default_factory=set)
    plans: dict[str, RunPlan] = field(default_factory=dict)
    written: int = 0


async def soak(
    order: Order, client: Client, environment: dict[str, str], database: Database
) -> Verdict:
    """Soak one database, on a server that runs already."""
    await upgrade(database.url)
    order.folder.mkdir(parents=True, exist_ok=True)
    log = order.folder / COMMITS
    store = await Store.open(database.url)
    try:
        async with serving(log) as tracker:
            return await Soak(order, client, environment, database, store, tracker).run()
    finally:
        await store.close()


class Soak:
    """One soak on one database."""

    def __init__(
        self,
        order: Order,
        client: Client,
        environment: dict[str, str],
        database: Database,
        store: Store,
        tracker: FakeTracker,
    ) -> None:
        self._order = order
        self._client = client
        self._store = store
        self._tracker = tracker
        self._tally = Tally()
        self._weather = Weather(order.seed, reads=READ_FAULTS, writes=WRITE_FAULTS)
        self._settings = _settings(order, database)
        self._crew = Crew(self._place(environment), order.seed)
        self._disasters = Disasters(order.seed, self._crew, database, store, self._tally.disasters)
        self._board = Board(client, self._settings.task_queue)
        self._control = TrackerControl(tracker.api.address, tracker.control.address)
        self._pen = _pen(self._settings, client.namespace)
        self._numbers = count(1)

    async def run(self) -> Verdict:
        """Disturb, calm down, and judge."""
        await self._control.define_labels(REPOSITORY, BUILTIN_RULES.labels)
        async with self._crew.working(), self._board.kept(), self._told():
            running = await self._disturbed()
            self._tracker.plan = Plan()
            await self._crew.calm()
            calm_at = time.time()
            late = await self._settle(running)
            witness = self._witness(calm_at, late)
            verdict = await judge(witness, self._store, self._client)
            verdict.exits(await self._crew.end())
        return verdict

    async def _disturbed(self) -> set[asyncio.Task[None]]:
        """Start runs under faults until the ledger has enough rows; return those that go on."""
        running: set[asyncio.Task[None]] = set()
        self._tracker.plan = self._weather
        until = time.monotonic() + self._order.seconds
        async with self._disasters.raging():
            while self._tally.written < self._order.operations and time.monotonic() < until:
                if len(running) < self._order.abreast:
                    running.add(asyncio.create_task(self._play(next(self._numbers))))
                    continue
                done, running = await asyncio.wait(
                    running, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    task.result()
        return running

    async def _play(self, number: int) -> None:
        """Start a run and stay with it to its end."""
        plan = draw_run(self._order.seed, number)
        await self._control.open_issue(
            REPOSITORY, plan.issue, title="The API returns 500", body="Since yesterday."
        )
        handle = await self._accompanied(plan, f"{self._settings.task_queue}-{number}")
        if plan.continues and (link := await self._link(handle)) is not None:
            await self._accompanied(plan.continuation(), f"{handle.id}-continued", link)

    async def _accompanied(
        self, plan: RunPlan, name: str, link: JsonValue = None
    ) -> WorkflowHandle[Any, TriageResponse]:
        handle = await self._start(plan, name, link)
        self._tally.plans[handle.id] = plan
        self._board.add(handle.id)
        await People(plan, handle, self._scene()).accompany()
        return handle

    async def _link(self, handle: WorkflowHandle[Any, TriageResponse]) -> JsonValue:
        """Return how to continue a run that ended with a person; None if it did not."""
        if self._board.closed[handle.id] is not WorkflowExecutionStatus.COMPLETED:
            return None
        if (await handle.result()).status is not Status.REVIEW_REQUIRED:
            return None
        while True:
            with suppress(RPCError, WorkflowQueryFailedError):
                state = await handle.query(QUERY_STATE, result_type=StateView)
                return {
                    "workflow_id": handle.id,
                    "run_id": handle.first_execution_run_id,
                    "version": state.version,
                }
            await self._board.news()

    async def _start(
        self, plan: RunPlan, name: str, link: JsonValue
    ) -> WorkflowHandle[Any, TriageResponse]:
        options: dict[str, JsonValue] = {
            "mode": "approve",
            "approval_window_seconds": plan.window_seconds,
            "max_steps": MAX_STEPS,
            "approvals": {**plan.approvals()},
            "context": {"tenant": plan.tenant, "repository": REPOSITORY, "issue": plan.issue},
        }
        if link is not None:
            options["continued_from"] = link
        if (script := plan.script()) is not None:
            options["model"] = f"recorded:{await self._stored(script)}"
        return await self._client.start_workflow(
            ISSUE_TRIAGE,
            args=[a_request(request_id=plan.issue), options],
            id=name,
            task_queue=self._settings.task_queue,
            result_type=TriageResponse,
        )

    async def _stored(self, script: Script) -> str:
        """Store a script, however often the database fails."""
        documents = DocumentStore(self._store)
        while True:
            with suppress(StorageError):
                return await documents.put(SHARED, DocumentKind.SCRIPT, canonical_json(script))

    async def _settle(self, running: set[asyncio.Task[None]]) -> bool:
        """Wait until all runs have ended and all operations are settled; whether it took too long.

        The last faults may have left an operation that waits for leases and quiet periods.
        """
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                await asyncio.gather(*running)
                await self._all_settled()
        except TimeoutError:
            return True
        return False

    async def _all_settled(self) -> None:
        while True:
            if not await self._count(unsettled=True):
                return
            await asyncio.sleep(LOOK_SECONDS)

    @asynccontextmanager
    async def _told(self) -> AsyncIterator[None]:
        """Tell of the progress while the body runs."""
        telling = asyncio.create_task(self._tell())
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _tell(self) -> None:
        for turn in count():
            with suppress(StorageError):
                self._tally.written = await self._count()
                if turn % TELL_EVERY == 0:
                    settled = self._tally.written - await self._count(unsettled=True)
                    self._say(settled)
                if turn % HEADS_EVERY == 0:
                    self._tally.heads += await heads(self._store)
            await asyncio.sleep(LOOK_SECONDS)

    def _say(self, settled: int) -> None:
        runs, over = len(self._tally.plans), len(self._board.closed)
        faults = sum(self._faults().values())
        self._order.say(
            f"  {settled} of {self._tally.written} operations settled, "
            f"{self._order.operations} wanted; {over} of {runs} runs over; {faults} faults"
        )

    async def _count(self, *, unsettled: bool = False) -> int:
        """Return how many operations there are, or how many are neither over nor in attention."""
        o = operations.c
        query = select(func.count()).select_from(operations)
        if unsettled:
            query = query.where(o.state.not_in([*SETTLED]), o.attention_at.is_(None))
        async with self._store.read() as connection:
            return int((await connection.execute(query)).scalar_one())

    def _faults(self) -> Counter[str]:
        """Return everything that went wrong so far, by kind."""
        struck = self._order.folder / STRUCK
        lines = struck.read_text(encoding="utf-8").splitlines() if struck.exists() else []
        ambushes = Counter(f"worker {line}" for line in lines)
        return self._tally.disasters + self._weather.counts + ambushes

    def _scene(self) -> Scene:
        return Scene(
            board=self._board,
            tracker=self._control,
            log=self._tracker.entries,
            counts=self._tally.deeds,
            pen=self._pen,
            approved=self._tally.approved,
        )

    def _witness(self, calm_at: float, late: bool) -> Witness:
        return Witness(
            queue=self._settings.task_queue,
            plans=self._tally.plans,
            closed=self._board.closed,
            faults=self._faults(),
            deeds=self._tally.deeds,
            stops=self._disasters.stops,
            heads=self._tally.heads,
            approved=self._tally.approved,
            log=self._order.folder / COMMITS,
            folder=self._order.folder,
            calm_at=calm_at,
            late=late,
        )

    def _place(self, environment: dict[str, str]) -> Place:
        orders = Orders(
            tracker=self._tracker.api.address,
            seed=self._order.seed,
            chance=AMBUSH_CHANCE,
            folder=self._order.folder,
        )
        whole = process_environment() | as_environment(self._settings) | environment
        return Place(environment=whole, orders=orders, freeze_seconds=FREEZE_SECONDS)


def _settings(order: Order, database: Database) -> Settings:
    return Settings(
        home=order.folder,
        database_url=database.url,
        task_queue=order.folder.name,
        local_trust=not order.signed,
        keyring=order.folder / KEYRING if order.signed else None,
        model="rules",
        tracker="local",
        lease_seconds=LEASE_SECONDS,
        quiet_period_seconds=QUIET_SECONDS,
        sweep_period_seconds=SWEEP_SECONDS,
        sticky_timeout_seconds=1,
        shutdown_grace_seconds=2,
    )


def _pen(settings: Settings, namespace: str) -> Pen:
    return Pen(namespace) if settings.keyring is None else cut_pen(namespace, settings.keyring)
