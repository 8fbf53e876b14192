"""A server and its workers, one set for each arm, and what their processes use.

Every arm has a server of its own: two arms on one server would share its caches and its database,
and nobody could say whose time it spent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from temporalio.client import Client

from benchmarks.plan import Plan, as_settings
from benchmarks.procfs import Process, Usage, processes, tree_usage
from tests.postgres_server import opened_server
from triage.embedded import EmbeddedServer, ServerOptions, WorkerProcess
from triage.settings import Role, Settings
from triage.settings_sources import CONFIG_VARIABLE
from triage.storage.migrate import upgrade

PARTS: Final = ("worker", "server", "database")
FLOOR_ROLES: Final = (tuple(Role),)
ROOT: Final = Path(__file__).parents[1]
"""Where a process that runs `benchmarks` finds it."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What runs for one arm.

    Attributes:
        client: of its server, as the product connects.
        settings: its workers'; a floor's are there, but not used.
        workers: its worker processes.
        roots: the ids of the processes of each part, whose children count, too.
        log: the server's.
        program: the module that a worker process runs.
        connection: the variables that a worker process gets beside its settings.
    """

    client: Client
    settings: Settings
    workers: list[WorkerProcess]
    roots: dict[str, list[int]]
    log: Path
    program: str
    connection: Mapping[str, str]

    def usage(self, seen: Mapping[int, Process] | None = None) -> dict[str, Usage]:
        """Return what each part used up to now."""
        seen = processes() if seen is None else seen
        return {part: tree_usage(roots, seen) for part, roots in self.roots.items()}

    async def stop_workers(self) -> None:
        """Stop all workers, which may have been killed."""
        for worker in self.workers:
            await worker.__aexit__(None, None, None)

    async def start_workers(self, roles: Sequence[tuple[Role, ...]]) -> None:
        """Start a worker for each set of roles, in place of those before."""
        self.workers.clear()
        for each in roles:
            worker = WorkerProcess(
                self.settings.model_copy(update={"roles": each}),
                self.connection,
                log=self.log.with_name("worker.log"),
                program=self.program,
            )
            await worker.__aenter__()
            self.workers.append(worker)
        self.roots["worker"] = [worker.pid for worker in self.workers]


@asynccontextmanager
async def floor_stack(plan: Plan, folder: Path) -> AsyncIterator[Stack]:
    """Run a floor: a server and the floor's worker."""
    async with peer_stack(plan, folder, "benchmarks.floor_worker", {}) as stack:
        yield stack


@asynccontextmanager
async def peer_stack(
    plan: Plan, folder: Path, program: str, variables: Mapping[str, str]
) -> AsyncIterator[Stack]:
    """Run a peer: a server and one worker of its own, which gets some variables more."""
    async with _stack(plan, folder, program, variables=variables) as stack:
        await stack.start_workers(FLOOR_ROLES)
        try:
            yield stack
        finally:
            await stack.stop_workers()


def product_roles(plan: Plan) -> list[tuple[Role, ...]]:
    """Return the roles of each of the product's worker processes."""
    roles: list[tuple[Role, ...]] = [(role,) for role in Role] if plan.two_roles else [tuple(Role)]
    return roles * plan.workers


@asynccontextmanager
async def product_stack(plan: Plan, folder: Path) -> AsyncIterator[Stack]:
    """Run the product: a server, its database if that is one, and its workers."""
    async with AsyncExitStack() as running:
        database = None
        if plan.database == "postgresql":
            database = running.enter_context(opened_server(tethered=True))
        stack = await running.enter_async_context(
            _stack(plan, folder, "worker", database.url if database else None)
        )
        if database:
            stack.roots["database"] = [database.pid]
        # As at every start but the first: an upgrade would stay in the worker's memory.
        await upgrade(stack.settings.database_url)
        await stack.start_workers(product_roles(plan))
        running.push_async_callback(stack.stop_workers)
        yield stack


@asynccontextmanager
async def _stack(
    plan: Plan,
    folder: Path,
    program: str,
    database_url: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> AsyncIterator[Stack]:
    log = folder / "server.log"
    options = ServerOptions(db_filename=None if plan.in_memory else folder / "temporal.db", log=log)
    # It stands in for ``triage.toml``, so that nobody's rules or settings are read.
    config = folder / "triage.toml"
    await asyncio.to_thread(_make, config)
    async with EmbeddedServer(options) as server:
        yield Stack(
            client=server.client,
            settings=product_settings(plan, folder, database_url),
            workers=[],
            roots={"server": [server.pid]},
            log=log,
            program=program,
            connection={
                **server.environment(),
                CONFIG_VARIABLE: str(config),
                "PYTHONPATH": str(ROOT),
                # Without byte code on disk, the sandbox compiles the floor's module for every run.
                "PYTHONDONTWRITEBYTECODE": "",
                **(variables or {}),
            },
        )


def _make(config: Path) -> None:
    config.parent.mkdir(parents=True)
    config.touch()


def product_settings(plan: Plan, folder: Path, database_url: str | None) -> Settings:
    """Return the settings of the product's workers.

    Raises:
        ValidationError: what ``--set`` gave is no setting, or not a value of one.
        SettingsError: a file with settings, or a variable that names one, cannot be used.
    """
    chosen = {
        "home": folder,
        "database_url": database_url or f"sqlite:///{folder / 'triage.db'}",
        "model": "rules",
        "tracker": "local",
        "local_trust": True,
        "workflow_sandbox": plan.sandbox,
        "shutdown_grace_seconds": 1.0,
        "log_level": "error",
        **as_settings(plan),
    }
    return Settings.model_validate(chosen)
