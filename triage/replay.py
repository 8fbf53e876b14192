"""Replaying recorded histories with the production converter and the sandbox.

Why it exists: a changed workflow meets runs that began on the old one. Replaying their histories
shows before a release whether it takes the same steps and comes to the same end; the SDK itself
compares only the steps.

A history that is not one makes the SDK hang or panic, so its shape is checked first; each replay
has a time limit, and whoever calls this runs it in a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TextIO

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    Replayer,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowRunner,
)

from triage.bounded import read_at_most
from triage.converter import data_converter
from triage.sandbox import sandboxed

MIN_EVENTS: Final = 2
LIMIT_SECONDS: Final = 60.0
MAX_HISTORY_BYTES: Final = 268_435_456
"""The server ends a run at 50 MiB, which JSON in base64 makes more of."""
_PREFIX: Final = "EVENT_TYPE_"
_CORE_MESSAGE: Final = re.compile(r'message: "((?:[^"\\]|\\.)*)"')


_TASK_ENDS: Final = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
        EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED,
        EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
    }
)


@cache
def _silent_runtime() -> Runtime:
    """Nothing but our own lines may reach standard output, where the SDK would log."""
    return Runtime(telemetry=TelemetryConfig(logging=None))


class HistoryError(ValueError):
    """A file is not a workflow's history."""


def read_history(path: Path) -> WorkflowHistory:
    """Read a history as `temporal workflow show --output json` writes it.

    Raises:
        HistoryError: the message says what is wrong with the file.
    """
    try:
        text = read_at_most(path, MAX_HISTORY_BYTES).decode()
        numbers = [int(event["eventId"]) for event in json.loads(text)["events"]]
    except OSError:
        raise HistoryError("the file cannot be read") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise HistoryError("the file is not a workflow history in JSON") from None
    if len(numbers) < MIN_EVENTS:
        raise HistoryError("a history begins with the start of a workflow and its first task")
    if numbers != list(range(1, len(numbers) + 1)):
        raise HistoryError("the history has missing or repeated events")
    return _parse(path.stem, text)


def _parse(name: str, text: str) -> WorkflowHistory:
    try:
        history = WorkflowHistory.from_json(name, text)
    except Exception:  # noqa: BLE001 - protobuf's parser raises many kinds
        raise HistoryError("the history has events that this SDK does not know") from None
    if not all(_is_known(event) for event in history.events):
        raise HistoryError("the history has events of an unknown type or without their attributes")
    if not all(map(_may_follow, history.events, history.events[1:])):
        raise HistoryError("the history has a workflow task that starts and does not end")
    starts = [
        e for e in history.events if e.HasField("workflow_execution_started_event_attributes")
    ]
    started = history.events[0].workflow_execution_started_event_attributes
    named = started.original_execution_run_id and started.workflow_type.name
    if starts != [history.events[0]] or not named or not started.HasField("task_queue"):
        raise HistoryError("a history begins with the start of one workflow")
    return WorkflowHistory(started.workflow_id or name, history.events)


def _may_follow(event: HistoryEvent, following: HistoryEvent) -> bool:
    """Whether a task's start is followed by its end, the one order that the SDK panics without."""
    is_start = event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
    return not is_start or following.event_type in _TASK_ENDS


def _is_known(event: HistoryEvent) -> bool:
    """Whether an event says what its type promises; the SDK panics over one that does not."""
    kind = EventType.DESCRIPTOR.values_by_number.get(event.event_type)
    name = "" if kind is None else kind.name.removeprefix(_PREFIX).lower()
    return event.WhichOneof("attributes") == f"{name}_event_attributes"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: the value that it returned, or the type and message of its failure."""

    value: Any = None
    failure: tuple[str, str] | None = None


class _OutcomeWatch(Interceptor):
    """Keeps the outcome of one replayed run."""

    def __init__(self) -> None:
        self.outcome: Outcome | None = None

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002, ARG002 - the SDK names it
    ) -> type[WorkflowInboundInterceptor]:
        """Return a class that reports back to this object."""
        watch = self

        class Inbound(WorkflowInboundInterceptor):
            async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002, ANN401 - the SDK's own
                try:
                    value = await super().execute_workflow(input)
                except FailureError as error:
                    kind = error.type if isinstance(error, ApplicationError) else None
                    watch.outcome = Outcome(failure=(kind or "", error.message))
                    raise
                payload = data_converter.payload_converter.to_payload(value)
                watch.outcome = Outcome(value=_as_json(payload.data))
                return value

        return Inbound


def recorded_outcome(history: WorkflowHistory) -> Outcome | None:
    """Return how a recorded run ended.

    None if it is open, was ended from outside or failed with an encrypted message.
    """
    last = history.events[-1]
    if last.HasField("workflow_execution_completed_event_attributes"):
        [*payloads] = last.workflow_execution_completed_event_attributes.result.payloads
        return Outcome(value=_as_json(payloads[0].data) if payloads else None)
    if last.HasField("workflow_execution_failed_event_attributes"):
        failure = last.workflow_execution_failed_event_attributes.failure
        if failure.HasField("encoded_attributes"):
            return None
        return Outcome(failure=(failure.application_failure_info.type, failure.message))
    return None


def _as_json(data: bytes) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(data)
    except ValueError:
        return data


async def replay_failure(
    history: WorkflowHistory,
    workflows: Sequence[type],
    *,
    runner: WorkflowRunner | None = None,
    interceptors: Sequence[Interceptor] = (),
) -> str | None:
    """Replay one history; return what went wrong, or None.

    It fails when the workflow would issue other commands, and when a run that ended would now
    end otherwise.
    """
    watch = _OutcomeWatch()
    replayer = Replayer(
        workflows=workflows,
        data_converter=data_converter,
        workflow_runner=runner or sandboxed(),
        interceptors=[watch, *interceptors],
        runtime=_silent_runtime(),
    )
    result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    if result.replay_failure is not None:
        return _readable(result.replay_failure)
    recorded = recorded_outcome(history)
    if recorded is not None and recorded != watch.outcome:
        return "the run takes the recorded steps, but now ends with another result"
    return None


def _readable(failure: Exception) -> str:
    """Return the failure without the frame that the SDK's core puts around its message."""
    text = str(failure)
    inner = _CORE_MESSAGE.search(text)
    return f"{type(failure).__name__}: {inner[1] if inner else text}"


async def _file_failure(path: Path, workflows: Sequence[type]) -> str | None:
    try:
        return await replay_failure(read_history(path), workflows)
    except HistoryError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - the SDK raises what it cannot report
        return _readable(error)


async def replay_files(
    paths: Iterable[str],
    workflows: Sequence[type],
    out: TextIO = sys.stdout,
    limit_seconds: float = LIMIT_SECONDS,
) -> int:
    """Replay files, writing one JSON line a file: ``{"file", "ok", "error"}``.

    A replay that does not end within `limit_seconds` is reported like any other failure. The SDK
    cannot be made to give up on it, so then this ends the process, once all files are reported.

    Returns:
        0 when every history replays, else 1.
    """
    status, stuck = 0, False
    for name in paths:
        replay = asyncio.create_task(_file_failure(Path(name), workflows))
        await asyncio.wait({replay}, timeout=limit_seconds)
        stuck = stuck or not replay.done()
        error = replay.result() if replay.done() else f"no end within {limit_seconds:g} seconds"
        out.write(json.dumps({"file": name, "ok": error is None, "error": error}) + "\n")
        out.flush()
        status = status or int(error is not None)
    if stuck:
        os._exit(status)
    return status
