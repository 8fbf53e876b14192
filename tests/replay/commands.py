"""What a replayed workflow asks Temporal for, in more detail than a replay compares.

Why it exists: a replay finds commands that were added, removed or swapped. It does not find that
an activity got other arguments, another queue or another timeout, though a run that is waiting
meets that change half way, too. `tests.replay.test_commands` holds both to the recordings;
`make histories` writes the list anew.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any, Final

from temporalio.client import WorkflowHistory
from temporalio.common import RetryPolicy
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import ActivityHandle

from triage.converter import data_converter

Arguments = list[tuple[str, Any]]

# In a replay the SDK gives the worker's queue a name of its own.
_REPLAY_QUEUE: Final = re.compile(r"^replay-(None)?")


class CommandWatch(Interceptor):
    """Keeps the activities that one replayed run asked for.

    Attributes:
        lines: each command with its queue, timeouts and the fields of its argument.
        arguments: the activities with their arguments, in order; local ones leave no trace of
            theirs in a history and are left out.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arguments: Arguments = []

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 - the SDK names it
    ) -> type[WorkflowInboundInterceptor]:
        """Return a class that reports back to this object."""
        watch = self

        class Outbound(WorkflowOutboundInterceptor):
            def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:  # noqa: A002 - the SDK's own
                watch.lines.append(_remote_line(input))
                watch.arguments.append((input.activity, _as_json(input.args)))
                return super().start_activity(input)

            def start_local_activity(self, input: StartLocalActivityInput) -> ActivityHandle[Any]:  # noqa: A002 - the SDK's own
                watch.lines.append(_local_line(input))
                return super().start_local_activity(input)

        class Inbound(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                super().init(Outbound(outbound))

        return Inbound


def recorded_arguments(history: WorkflowHistory) -> Arguments:
    """Return the activities of a history with their arguments, in order."""
    scheduled = [
        event.activity_task_scheduled_event_attributes
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    return [
        (item.activity_type.name, [json.loads(p.data) for p in item.input.payloads])
        for item in scheduled
    ]


def _as_json(values: Any) -> list[Any]:  # noqa: ANN401 - an activity's arguments
    encoded = data_converter.payload_converter.to_payloads(values)
    return [json.loads(payload.data) for payload in encoded]


def _remote_line(command: StartActivityInput) -> str:
    queue = _REPLAY_QUEUE.sub("its own queue", command.task_queue or "replay-")
    beat = f", heartbeat {_span(command.heartbeat_timeout)}" if command.heartbeat_timeout else ""
    return f"activity {_called(command.activity, command)} on {queue}: {_times(command)}{beat}"


def _local_line(command: StartLocalActivityInput) -> str:
    return f"local activity {_called(command.activity, command)}: {_times(command)}"


def _called(name: str, command: StartActivityInput | StartLocalActivityInput) -> str:
    names = sorted({name for value in _as_json(command.args) for name in value})
    return f"{name}({', '.join(names)})"


def _times(command: StartActivityInput | StartLocalActivityInput) -> str:
    retries = command.retry_policy or RetryPolicy()
    pause = f"{_span(retries.initial_interval)} to {_span(retries.maximum_interval)}"
    return (
        f"{_span(command.start_to_close_timeout)} an attempt,"
        f" {_span(command.schedule_to_close_timeout)} in all,"
        f" {retries.maximum_attempts} attempts, pauses {pause}"
    )


def _span(duration: timedelta | None) -> str:
    return "none" if duration is None else f"{duration.total_seconds():g} s"
