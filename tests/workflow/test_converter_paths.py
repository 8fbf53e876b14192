"""The converter's rules in workflows and activities on a real server."""

from __future__ import annotations

import shutil
import sysconfig
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from tests.unit.test_converter import ODD_PAYLOADS, Note
from tests.workflow.world import STARTUP
from triage.converter import data_converter, decode_raw

QUEUE = f"converter-{uuid.uuid4()}"
SHORT = timedelta(seconds=20)
ONCE = RetryPolicy(maximum_attempts=1)
RUNNER = SandboxedWorkflowRunner(
    restrictions=SandboxRestrictions.default.with_passthrough_all_modules()
)


@workflow.defn(name="RawEcho")
class RawEcho:
    """Answers what it was started with."""

    @workflow.run
    async def run(self, *args: Any) -> list[list[str]]:  # noqa: ANN401 - the form under test
        """Return each argument's class, encoding and hex bytes."""
        return [
            [type(a).__name__, a.payload.metadata["encoding"].decode(), a.payload.data.hex()]
            for a in args
        ]


@workflow.defn(name="Typed")
class Typed:
    """Takes exactly one note."""

    @workflow.run
    async def run(self, note: Note) -> str:
        """Return the note's text."""
        return note.text


@activity.defn(name="no_arguments")
async def no_arguments() -> Note:
    """Return a note with its optional field unset."""
    return Note(text="from activity")


@activity.defn(name="fail_with_details")
async def fail_with_details() -> None:
    """Fail with structured details."""
    raise ApplicationError("failed", {"code": 7}, ["x"], type="Planned", non_retryable=True)


@activity.defn(name="resume")
async def resume() -> dict[str, Any]:
    """Heartbeat and fail once, then return what the heartbeat left."""
    [*details] = activity.info().heartbeat_details
    if not details:
        activity.heartbeat({"position": 3})
        raise ApplicationError("again", next_retry_delay=timedelta(milliseconds=1))
    return decode_raw(details[0], dict[str, Any])


@activity.defn(name="wrong_result")
async def wrong_result() -> dict[str, str]:
    """Break the promise that the caller relies on."""
    return {"secret_key": "secret value"}


@workflow.defn(name="Everything")
class Everything:
    """Uses every path on which a payload is decoded."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.done = False

    @workflow.run
    async def run(self, *args: Any) -> dict[str, Any]:  # noqa: ANN401 - the form under test
        """Return what each path delivered."""
        seen: dict[str, Any] = {"arguments": len(args)}
        note = await workflow.execute_activity(
            "no_arguments", result_type=Note, start_to_close_timeout=SHORT
        )
        seen["activity"] = note.text
        local = await workflow.execute_local_activity(
            "no_arguments", result_type=Note, start_to_close_timeout=SHORT
        )
        seen["local activity"] = local.text
        seen["details"] = await self._failure_details()
        seen["heartbeat"] = await workflow.execute_activity(
            "resume", result_type=dict[str, Any], start_to_close_timeout=SHORT
        )
        workflow.upsert_memo({"added": "later"})
        seen["memo"] = workflow.memo_value("given", type_hint=str)
        seen["memo added"] = workflow.memo_value("added", type_hint=str)
        await workflow.wait_condition(lambda: self.done)
        await workflow.wait_condition(workflow.all_handlers_finished)
        seen["update"] = [note.text for note in self.notes]
        return seen

    async def _failure_details(self) -> list[Any]:
        try:
            await workflow.execute_activity(
                "fail_with_details", start_to_close_timeout=SHORT, retry_policy=ONCE
            )
        except ActivityError as error:
            return list(error.cause.details) if isinstance(error.cause, ApplicationError) else []
        return []

    @workflow.update
    async def add(self, note: Note) -> Note:
        """Keep a note and return it."""
        self.notes.append(note)
        return note

    @add.validator
    def _check(self, note: Note) -> None:
        """Accept every note that decodes."""

    @workflow.signal(dynamic=True)
    def on_signal(self, name: str, args: Sequence[RawValue]) -> None:
        """Finish on any signal."""
        self.done = True

    @workflow.query
    def notes_so_far(self) -> list[Note]:
        """Return the notes."""
        return self.notes


@workflow.defn(name="CallsWrongResult")
class CallsWrongResult:
    """Declares a result type that the activity does not keep."""

    @workflow.run
    async def run(self) -> str:
        """Return the note's text, if there were one."""
        note: Note = await workflow.execute_activity(
            "wrong_result", result_type=Note, start_to_close_timeout=SHORT, retry_policy=ONCE
        )
        return note.text


WORKFLOWS = [RawEcho, Typed, Everything, CallsWrongResult]


@pytest.fixture(scope="module")
async def client() -> AsyncIterator[Client]:
    """A client of a real dev server with a worker behind it."""
    binary = shutil.which("temporal", path=sysconfig.get_path("scripts"))
    async with (
        await WorkflowEnvironment.start_local(
            data_converter=data_converter,
            dev_server_existing_path=binary,
            dev_server_startup_timeout=STARTUP,
            dev_server_extra_args=[
                "--dynamic-config-value",
                'history.timerProcessorMaxTimeShift="1ms"',
            ],
        ) as env,
        Worker(
            env.client,
            task_queue=QUEUE,
            workflows=WORKFLOWS,
            activities=[no_arguments, fail_with_details, resume, wrong_result],
            workflow_runner=RUNNER,
        ),
    ):
        yield env.client


async def _start(
    client: Client,
    name: str,
    args: Sequence[Any],
    **options: Any,  # noqa: ANN401 - passed on
) -> WorkflowHandle[Any, Any]:
    return await client.start_workflow(
        name,
        args=args,
        id=f"{name}-{uuid.uuid4()}",
        task_queue=QUEUE,
        execution_timeout=SHORT,
        **options,
    )


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_workflow_survives_any_arity(client: Client, count: int) -> None:
    """A workflow that takes any arguments starts with none, one or three."""
    handle = await _start(client, "RawEcho", ["text"] * count, result_type=list[list[str]])
    assert [["RawValue", "json/plain", b'"text"'.hex()]] * count == await handle.result()


async def test_workflow_survives_any_payload(client: Client) -> None:
    """A workflow that takes any arguments sees every payload untouched, undecodable ones too."""
    args = [RawValue(p) for p in ODD_PAYLOADS.values()]
    handle = await _start(client, "RawEcho", args, result_type=list[list[str]])
    expected = [
        ["RawValue", p.metadata.get("encoding", b"").decode(), p.data.hex()]
        for p in ODD_PAYLOADS.values()
    ]
    assert expected == await handle.result()


@pytest.mark.parametrize("bad", [5, b"bytes", None, {"text": "a", "sk-secret": 1}])
async def test_typed_workflow_fails_cleanly(client: Client, bad: object) -> None:
    """Input that breaks a declared type fails the run at once; the failure quotes none of it."""
    handle = await _start(client, "Typed", [bad])
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "PayloadValidationError"
    last_event = (await handle.fetch_history()).events[-1]
    assert "sk-secret" not in str(last_event)


async def test_wrong_activity_result_fails_the_run(client: Client) -> None:
    """An activity that breaks its declared result ends the run instead of looping its task."""
    handle = await _start(client, "CallsWrongResult", [])
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    problems = [{"type": "missing", "loc": "text"}, {"type": "extra_forbidden", "loc": "*"}]
    assert (problems,) == caught.value.cause.details


async def test_every_path_keeps_working_and_replays(client: Client) -> None:
    """Results, details, heartbeats, memos, updates and queries decode by declared type."""
    handle = await _start(
        client, "Everything", ["x", 2], memo={"given": "at start"}, result_type=dict[str, Any]
    )
    note = Note(text="kept")
    assert note == await handle.execute_update("add", note, result_type=Note)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("add", {"text": 1})
    assert isinstance(refused.value.cause, ApplicationError)
    assert refused.value.cause.type == "PayloadValidationError"
    assert [note] == await handle.query("notes_so_far", result_type=list[Note])
    await handle.signal("anything", args=["a", b"b", None])
    assert await handle.result() == {
        "arguments": 2,
        "activity": "from activity",
        "local activity": "from activity",
        "details": [{"code": 7}, ["x"]],
        "heartbeat": {"position": 3},
        "memo": "at start",
        "memo added": "later",
        "update": ["kept"],
    }
    assert await (await handle.describe()).memo_value("given", type_hint=str) == "at start"
    replayer = Replayer(workflows=WORKFLOWS, data_converter=data_converter, workflow_runner=RUNNER)
    assert (await replayer.replay_workflow(await handle.fetch_history())).replay_failure is None
