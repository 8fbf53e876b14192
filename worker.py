"""The worker: settings -> client -> workers. Wiring only; run it with ``python -m worker``.

It reads TRIAGE_... settings and the same connection settings as the `temporal` CLI, says
``worker ready`` once it polls, and stops cleanly on SIGTERM and Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from importlib.metadata import version
from typing import Any, Final

from temporalio.client import Client
from temporalio.worker import Worker

from activities.approvals import ApprovalActivities
from activities.decide import DecideActivities
from activities.foreign_reads import held
from activities.guard import FailureGuard
from activities.incidents import IncidentActivities
from activities.labels import LabelActivities, PreviewActivities
from activities.reads import READ_HANDLERS, read_activities
from activities.rules_source import RulesSource
from activities.run_context import RunContextActivities
from activities.services import Services
from activities.sweeper import Sweeper, sweeping
from triage import allocator, connection, extensions, logs
from triage.contracts.names import writes_queue
from triage.kept_runs import HEADROOM, KeptRuns
from triage.leaving import end_within
from triage.models.factory import preload
from triage.models.llm_setup import LlmSetup
from triage.policy.rules_file import RulesFileError
from triage.policy.tools import BUILTIN_TOOLS
from triage.replay import replay_files
from triage.rules_place import RulesPlace
from triage.sandbox import bare, sandboxed
from triage.settings import Role, Settings, SettingsError, load_settings, strange
from triage.signing.files import KeyringFile
from triage.signing.keys import KeyringError
from triage.storage.acceptances import Acceptances
from triage.storage.documents import DocumentStore
from triage.storage.engine import Store
from triage.storage.errors import StorageError
from triage.storage.evidence import EvidenceStore
from triage.storage.ledger import Ledger
from triage.storage.migrate import upgrade
from triage.storage.outbox import Outbox
from triage.supported import check_supported
from triage.trackers.factory import open_trackers
from triage.web.starter import Starter
from workflows.evidence_loop import EvidenceLoop
from workflows.issue_triage import IssueTriage
from workflows.unknown import UnknownWorkflow

CLEAN_UP_SECONDS: Final = 45.0
"""What a stopped worker gets beside its grace; a wait for SQLite's lock alone may take 30."""
WORKFLOWS: Sequence[type] = (IssueTriage, EvidenceLoop, UnknownWorkflow)


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Bring the database up to date and open everything that activities work with.

    Raises:
        RulesFileError: the rules cannot be used.
        StorageError: the database cannot be used.
    """
    await upgrade(settings.database_url)
    store = await Store.open(settings.database_url)
    try:
        rules = RulesSource(RulesPlace.of(settings), BUILTIN_TOOLS, Acceptances(store))
        # Whoever starts a worker is told at once of rules that cannot be used.
        await rules.in_force()
        llm = LlmSetup.of(settings)
        preload(llm)
        yield Services(
            store=store,
            documents=DocumentStore(store),
            evidence=EvidenceStore(store),
            ledger=Ledger(
                store,
                lease_seconds=settings.lease_seconds,
                quiet_period_seconds=settings.quiet_period_seconds,
            ),
            trackers=open_trackers(settings, store),
            tools=BUILTIN_TOOLS,
            rules=rules,
            orchestrator=f"bounded-triage/{version('bounded-triage')}",
            default_model=settings.model,
            default_tracker=settings.tracker,
            local_trust=bool(settings.local_trust),
            llm=llm,
            keyring=KeyringFile(settings.keyring),
            approval_skew=timedelta(seconds=settings.approval_skew_seconds),
            retention=timedelta(days=settings.evidence_retention_days),
            write_timeout=timedelta(seconds=settings.write_timeout_seconds),
            ledger_retention=timedelta(days=settings.ledger_retention_days),
        )
    finally:
        await store.close()


def build_workers(client: Client, settings: Settings, services: Services) -> list[Worker]:
    """Return a worker for each role; only the write worker's queue carries writes."""
    common: dict[str, Any] = {
        "interceptors": [FailureGuard()],
        "graceful_shutdown_timeout": timedelta(seconds=settings.shutdown_grace_seconds),
    }
    workers = []
    if Role.DECIDE in settings.roles:
        sticky = timedelta(seconds=settings.sticky_timeout_seconds)
        kept = KeptRuns(settings.cached_runs)
        workers.append(
            kept.attach(
                Worker(
                    client,
                    task_queue=settings.task_queue,
                    workflows=WORKFLOWS,
                    workflow_runner=sandboxed(kept) if settings.workflow_sandbox else bare(kept),
                    activities=decide_activities(services),
                    sticky_queue_schedule_to_start_timeout=sticky,
                    max_cached_workflows=settings.cached_runs + HEADROOM,
                    **common,
                )
            )
        )
    if Role.WRITE in settings.roles:
        workers.append(
            Worker(
                client,
                task_queue=writes_queue(settings.task_queue),
                activities=[LabelActivities(services).apply],
                **common,
            )
        )
    return workers


def decide_activities(services: Services) -> list[Callable[..., Any]]:
    """Return all activities but the write: nothing here can change anything outside our store."""
    incidents = IncidentActivities(services)
    approvals = ApprovalActivities(services.store, services.keyring, skew=services.approval_skew)
    added = {name: held(handler) for name, handler in extensions.handlers().items()}
    return [
        RunContextActivities(services).pin,
        DecideActivities(services).decide,
        PreviewActivities(services).preview,
        approvals.verify,
        *read_activities(services, {**READ_HANDLERS, **added}),
        incidents.open,
        incidents.choose,
        incidents.read,
    ]


def _starter(client: Client, settings: Settings, services: Services) -> Starter:
    """Return what starts requests that a process for deliveries accepted, and left behind."""

    async def connected() -> Client:
        return client

    outbox = Outbox(services.store)
    return Starter(outbox, services.documents, connected, settings.task_queue)


async def serve(settings: Settings) -> None:
    """Poll until SIGTERM or Ctrl-C, then let running activities finish."""
    client = await connection.connect(settings)
    await connection.ensure_search_attributes(client)
    connection.check_storage_is_reachable(settings, client)
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with open_services(settings) as services, AsyncExitStack() as running:
        for worker in build_workers(client, settings, services):
            await running.enter_async_context(worker)
        if Role.WRITE in settings.roles:
            sweeper = Sweeper(client, services, _starter(client, settings, services).start_all)
            period = settings.sweep_period_seconds
            await running.enter_async_context(sweeping(sweeper, period_seconds=period))
        # What was loaded stays until the end; to look through it again took a millisecond a run.
        gc.collect()
        gc.freeze()
        allocator.give_back()
        print("worker ready", file=sys.stderr, flush=True)  # noqa: T201 - whoever started it waits
        await stop.wait()
        end_within(settings.shutdown_grace_seconds + CLEAN_UP_SECONDS, "worker")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the worker, or replay histories with what it would run.

    Returns:
        0 when it was stopped, 1 when a replay failed, 2 for settings that cannot be used, 3 when
        the server or the database cannot be reached.
    """
    parser = argparse.ArgumentParser(prog="worker", description="Run a Bounded Triage worker.")
    parser.add_argument("--replay", nargs="+", metavar="FILE", help="replay histories and exit")
    options = parser.parse_args(arguments)
    if options.replay:
        return connection.run_async(replay_files(options.replay, WORKFLOWS))
    allocator.use_one_arena()
    try:
        settings = load_settings()
        check_supported(settings)
        logs.configure(settings.log_level)
        logs.tell_once(__name__, strange())
        if settings.keyring is not None:
            KeyringFile(settings.keyring).load()
        RulesPlace.of(settings).read(BUILTIN_TOOLS)
        connection.run_async(serve(settings))
    except (SettingsError, KeyringError, RulesFileError) as error:
        return _stopped(error, 2)
    except (connection.ServerUnreachable, StorageError) as error:
        return _stopped(error, 3)
    return 0


def _stopped(error: Exception, status: int) -> int:
    print(f"worker: {error}", file=sys.stderr, flush=True)  # noqa: T201 - meant for people
    return status


if __name__ == "__main__":
    sys.exit(main())
