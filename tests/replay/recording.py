"""One run to record, and the shortest ways to say what happens to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from tests.replay.stage import Stage
from tests.workflow.decisions import Script, a_request
from tests.workflow.runs import Run
from triage.contracts.names import ISSUE_TRIAGE, TASK_QUEUE

Drive = Callable[[Stage, Run], Awaitable[None]]
Prepare = Callable[[Stage, str], Awaitable[dict[str, JsonValue]]]
Options = Mapping[str, JsonValue]

OPEN: Final = "open"
CANCELED: Final = "canceled"
APPROVE: Final[Options] = {"mode": "approve"}


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One run to record.

    Attributes:
        name: names everything about it.
        ends: status and failure class of its response, such as ``failed/tool_error``; the status
            of an evidence loop; ``open``, ``canceled``, or ``failure`` and the failure's type.
        script: what the recorded model answers; None for the rules model.
        request: the request, or any JSON value that stands in its place.
        options: the run's options, without model and repository.
        drive: what happens to it while it runs.
        inputs: its raw arguments, instead of all of the above.
        workflow: its type.
        edit: a request that overtakes the start of the run.
        thinks: whether its model waits to be let go on; see `HeldServices`.
        queue: whose workers carry it; see `opened_stage`.
        prepare: what happens before it starts; returns more options.
        first_of: the run whose first execution this is, instead of all of the above.
    """

    name: str
    ends: str
    script: Script | None = None
    request: JsonValue = field(default_factory=a_request)
    options: Options = field(default_factory=dict)
    drive: Drive | None = None
    inputs: tuple[Any, ...] | None = None
    workflow: str = ISSUE_TRIAGE
    edit: JsonValue = None
    thinks: bool = False
    queue: str = TASK_QUEUE
    prepare: Prepare | None = None
    first_of: str | None = None


def plain(name: str, ends: str, *script: JsonValue, **options: JsonValue) -> Recording:
    """A run that nobody touches."""
    return Recording(name=name, ends=ends, script=[*script], options=options)


def driven(
    name: str, ends: str, drive: Drive, *script: JsonValue, **options: JsonValue
) -> Recording:
    """A run in approve mode, unless the options say otherwise, that people act on."""
    merged = {**APPROVE, **options}
    return Recording(name=name, ends=ends, script=[*script], options=merged, drive=drive)


def unfit(name: str, *inputs: object) -> Recording:
    """A run whose arguments are not what they should be."""
    return Recording(name=name, ends="failed/invalid_input", inputs=inputs)


def raw(encoding: bytes, data: bytes) -> RawValue:
    """A payload as it is, whatever it holds."""
    return RawValue(Payload(metadata={"encoding": encoding}, data=data))
