"""Follows activities from when they were asked for to how they ended, local ones included."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from temporalio.api.common.v1 import Payloads
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent, MarkerRecordedEventAttributes

from triage.contracts.names import ACTIVITY_DECIDE
from triage.story.parts import time_of
from triage.story.payloads import Fields, failure_of, first
from triage.story.words import counted, named, span

LOCAL_ACTIVITY: Final = "core_local_activity"
UNNAMED: Final = "a local activity"
_NANOS_A_MICRO: Final = 1_000


class Ending(StrEnum):
    """How an activity ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    CANCELED = "was canceled"


@dataclass(frozen=True, slots=True)
class Call:
    """One activity.

    Attributes:
        request: its argument; a local activity leaves none in the history, but for what its result
            repeats of it.
        trouble: the type of the failure that the attempt before the last one met.
        turn_at: the run's own time when it asked; a local activity has none.
    """

    name: str
    request: Fields
    asked_at: datetime
    attempts: int = 0
    trouble: str = ""
    turn_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """An activity that ended.

    Attributes:
        result: what it returned, if it returned anything that can be read here.
        failure: the type of its failure and the message.
        along: the activity that it was done in, if it was none of its own.
    """

    call: Call
    event: HistoryEvent
    ending: Ending
    took: timedelta
    result: Fields
    failure: tuple[str, str] = ("", "")
    along: str = ""

    @property
    def effort(self) -> str:
        """Attempts and time, and what earlier attempts met."""
        if self.along:
            return f"along with {named(self.along)}"
        attempts = counted(self.call.attempts, "attempt") if self.call.attempts > 1 else ""
        before = f"before that {named(self.call.trouble)}" if self.call.trouble else ""
        return ", ".join(part for part in (span(self.took), attempts, before) if part)

    @property
    def duration_ms(self) -> int | None:
        """How long it took, from when it was asked for; None if that is part of another's."""
        return None if self.along else self.took // timedelta(milliseconds=1)


class Calls:
    """The activities that were asked for and have not ended."""

    def __init__(self) -> None:
        self._open: dict[int, Call] = {}

    def open(self) -> list[Call]:
        """Return the activities that nobody has answered yet."""
        return list(self._open.values())

    def ask(self, event: HistoryEvent, turn_at: datetime) -> tuple[()]:
        """Take an activity that was asked for; there is nothing to tell before it ends."""
        asked = event.activity_task_scheduled_event_attributes
        request = Fields(first(asked.input))
        self._open[event.event_id] = Call(
            asked.activity_type.name, request, time_of(event), turn_at=turn_at
        )
        return ()

    def begin(self, event: HistoryEvent) -> tuple[()]:
        """Take the attempt that was the last one, which is all that a history keeps of them."""
        begun = event.activity_task_started_event_attributes
        call = self._open.get(begun.scheduled_event_id)
        if call is not None:
            trouble = failure_of(begun.last_failure)[0]
            changed = replace(call, attempts=begun.attempt, trouble=trouble)
            self._open[begun.scheduled_event_id] = changed
        return ()

    def end(self, event: HistoryEvent) -> Done | None:
        """Take how an activity ended; None if the history does not hold when it was asked for."""
        if event.HasField("activity_task_completed_event_attributes"):
            completed = event.activity_task_completed_event_attributes
            return self._done(event, completed.scheduled_event_id, result=completed.result)
        if event.HasField("activity_task_failed_event_attributes"):
            failed = event.activity_task_failed_event_attributes
            return self._done(event, failed.scheduled_event_id, Ending.FAILED, failed.failure)
        if event.HasField("activity_task_timed_out_event_attributes"):
            late = event.activity_task_timed_out_event_attributes
            return self._done(event, late.scheduled_event_id, Ending.TIMED_OUT, late.failure)
        canceled = event.activity_task_canceled_event_attributes
        return self._done(event, canceled.scheduled_event_id, Ending.CANCELED)

    def _done(
        self,
        event: HistoryEvent,
        scheduled: int,
        ending: Ending = Ending.COMPLETED,
        failure: Failure | None = None,
        *,
        result: Payloads | None = None,
    ) -> Done | None:
        call = self._open.pop(scheduled, None)
        if call is None:
            return None
        return Done(
            call=call,
            event=event,
            ending=ending,
            took=time_of(event) - call.asked_at,
            result=Fields(None if result is None else first(result)),
            failure=("", "") if failure is None else failure_of(failure),
        )


def local_call(event: HistoryEvent) -> Done | None:
    """Return the local activity that a marker records; None if it records something else."""
    marker = event.marker_recorded_event_attributes
    if marker.marker_name != LOCAL_ACTIVITY:
        return None
    data = Fields(first(marker.details["data"]) if "data" in marker.details else None)
    asked = _moment(data.fields("original_schedule_time"), time_of(event))
    ended = _moment(data.fields("complete_time"), asked)
    failed = marker.HasField("failure")
    result = _local_result(marker)
    return Done(
        call=Call(
            data.text("activity_type") or UNNAMED,
            result.fields("asked"),
            asked,
            data.number("attempt") or 1,
        ),
        event=event,
        ending=Ending.FAILED if failed else Ending.COMPLETED,
        took=max(ended - asked, timedelta()),
        result=result,
        failure=failure_of(marker.failure) if failed else ("", ""),
    )


def answer_beside(done: Done) -> Done | None:
    """Return the model's answer that an activity brought along; None if it brought none."""
    answer = done.result.fields("answer")
    if not answer.readable:
        return None
    call = Call(ACTIVITY_DECIDE, answer.fields("asked"), done.call.asked_at, 1)
    return Done(call, done.event, Ending.COMPLETED, timedelta(), answer, along=done.call.name)


def _local_result(marker: MarkerRecordedEventAttributes) -> Fields:
    return Fields(first(marker.details["result"]) if "result" in marker.details else None)


def _moment(stamp: Fields, otherwise: datetime) -> datetime:
    seconds, nanos = stamp.number("seconds"), stamp.number("nanos") or 0
    if seconds is None:
        return otherwise
    try:
        begin = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return otherwise
    return begin + timedelta(microseconds=nanos // _NANOS_A_MICRO)
