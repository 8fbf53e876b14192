"""Starts the runs of accepted requests, for as long as it takes.

Why it exists: what was accepted must become a run although the server was away or this process died
half-way. So this loop repeats until the store says that a run has the request. Each repeat is
harmless: a workflow id of its own is rejected the second time, and so is a signal's request id.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from pydantic import JsonValue
from temporalio.api.common.v1 import Payloads, WorkflowExecution
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from triage.connection import ServerUnreachable
from triage.contracts import names
from triage.faults import Point, reach
from triage.settings_sources import SettingsError
from triage.storage.documents import Document, DocumentKind, DocumentStore
from triage.storage.errors import StorageError
from triage.storage.outbox import Held, Outbox

PERIOD_SECONDS: Final = 2.0
"""Between two looks for what another process left."""
PAUSE_SECONDS: Final = 5.0
"""After an attempt that the server did not answer."""
NO_ROOM_SECONDS: Final = 30.0
"""After a run took no newer text: it has had as many messages as it may, until it goes on."""
PREFIX: Final = "issue-"

_RPC_TIMEOUT: Final = timedelta(seconds=5)
_HEALTH_TIMEOUT: Final = timedelta(seconds=1)
_HOPELESS: Final = frozenset({RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.OUT_OF_RANGE})
_log = logging.getLogger(__name__)


class _NoRoomError(Exception):
    """The run that is under way takes no message any more: it waits for its worker, or its end."""


class Starter:
    """The one task of a process that starts runs.

    Args:
        outbox: what to start.
        documents: with what.
        connect: reaches the server, or raises within seconds.
        task_queue: where the runs are carried.
    """

    def __init__(
        self,
        outbox: Outbox,
        documents: DocumentStore,
        connect: Callable[[], Awaitable[Client]],
        task_queue: str,
    ) -> None:
        self._outbox = outbox
        self._documents = documents
        self._connect = connect
        self._task_queue = task_queue
        self._client: Client | None = None
        self._wanted = asyncio.Event()
        self._told = ""

    def wake(self) -> None:
        """Say that there is something to start."""
        self._wanted.set()

    async def run(self) -> None:
        """Start what is due until cancelled; no fault ends it."""
        while True:
            self._wanted.clear()
            try:
                answered = await self.start_all()
            except StorageError:
                _log.warning("the store of requests does not answer", exc_info=True)
                answered = False
            except Exception:  # noqa: BLE001 - the next round may do better
                _log.warning("starting runs broke off", exc_info=True)
                answered = False
            if answered:
                await self._rest()
            else:
                await asyncio.sleep(PAUSE_SECONDS)

    async def start_all(self) -> bool:
        """Start everything that is due; False if the server does not answer."""
        try:
            await self.reached()
        except (ServerUnreachable, SettingsError) as error:
            # Nothing is held meanwhile, so a newer text can still replace an older one.
            if (told := str(error)) != self._told:
                _log.warning("no run can be started: %s", told)
                self._told = told
            return False
        while (held := await self._outbox.take()) is not None:
            if not await self._start(held):
                return False
        return True

    async def answers(self) -> bool:
        """Tell whether the server answers now, within about a second."""
        if self._client is None:
            return False
        try:
            return await self._client.service_client.check_health(timeout=_HEALTH_TIMEOUT)
        except RPCError:
            return False

    async def _rest(self) -> None:
        try:
            await asyncio.wait_for(self._wanted.wait(), PERIOD_SECONDS)
        except TimeoutError:
            return

    async def reached(self) -> Client:
        """Return the one client of this process, connected when it is first wanted.

        Raises:
            ServerUnreachable: the server does not answer.
            SettingsError: the settings do not fit it.
        """
        if self._client is None:
            self._client = await self._connect()
        return self._client

    async def _start(self, held: Held) -> bool:
        """Carry one request on; False if the server does not answer."""
        inputs = await self._inputs(held)
        if inputs is None:
            await self._give_up(held, "content_gone")
            return True
        try:
            await self._send(await self.reached(), held, inputs)
        except _NoRoomError:
            # Others can be started meanwhile.
            await self._wait(held, "no_room", NO_ROOM_SECONDS)
            return True
        except (ServerUnreachable, SettingsError):
            return await self._wait(held, "unreachable")
        except RPCError as error:
            if error.status in _HOPELESS:
                await self._give_up(held, "refused_by_server")
                return True
            return await self._wait(held, error.status.name.lower())
        return True

    async def _inputs(self, held: Held) -> tuple[JsonValue, JsonValue] | None:
        digest = held.document_digest
        found = await self._documents.get(held.request_key, DocumentKind.REQUEST, digest)
        if not isinstance(found, Document):
            return None
        document = json.loads(found.body)
        return document["request"], document["options"]

    async def _send(self, client: Client, held: Held, inputs: tuple[JsonValue, JsonValue]) -> None:
        reach(Point.OUTBOX_BEFORE_SEND)
        before = held.predecessor
        if before is not None and await self._edit(client, before, held, inputs[0]):
            reach(Point.OUTBOX_AFTER_SEND, "edit")
            await self._record(held, before, None, "edited")
            return
        workflow_id = f"{PREFIX}{held.request_key}"
        run_id = await self._begin(client, workflow_id, inputs)
        reach(Point.OUTBOX_AFTER_SEND, "start")
        await self._record(held, workflow_id, run_id, "started")

    async def _edit(self, client: Client, workflow_id: str, held: Held, request: JsonValue) -> bool:
        """Give a run that goes on the newer text; False if it has ended."""
        message = SignalWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id),
            signal_name=names.SIGNAL_EDIT,
            input=Payloads(payloads=await client.data_converter.encode([request])),
            identity=client.identity,
            # The server drops a second signal under the same one.
            request_id=held.request_key,
        )
        try:
            await client.workflow_service.signal_workflow_execution(
                message, retry=True, timeout=_RPC_TIMEOUT
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            if error.status in _HOPELESS:
                raise _NoRoomError from None
            raise
        return True

    async def _begin(
        self, client: Client, workflow_id: str, inputs: tuple[JsonValue, JsonValue]
    ) -> str | None:
        """Start a run, or find that it was started before."""
        try:
            handle = await client.start_workflow(
                names.ISSUE_TRIAGE,
                args=list(inputs),
                id=workflow_id,
                task_queue=self._task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                rpc_timeout=_RPC_TIMEOUT,
            )
        except WorkflowAlreadyStartedError as error:
            return error.run_id
        return handle.first_execution_run_id

    async def _record(self, held: Held, workflow_id: str, run_id: str | None, how: str) -> None:
        if await self._outbox.started(held, workflow_id, run_id):
            _log.info("a request has its run", extra={"workflow_id": workflow_id, "outcome": how})

    async def _give_up(self, held: Held, code: str) -> None:
        _log.error("a request can never be started", extra={"code": code})
        await self._outbox.failed(held, code)

    async def _wait(self, held: Held, code: str, seconds: float = PAUSE_SECONDS) -> bool:
        _log.warning("a request waits for the server", extra={"code": code})
        await self._outbox.later(held, code, seconds)
        return False
