"""Tells the story of a run from its history alone: no worker, no query and no clock is needed.

Why it exists: when a run surprised somebody, its worker may be gone and its code may have changed.
The history holds all that happened; this says it in words, in order, with what came of each step.
The issue's own text is never told.

Events reach a run in batches, one a workflow task, so what it made of a message depends on the
batch: first all messages in it are looked at, then everything else, at the time the task began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from triage.contracts.names import ACTIVITY_DECIDE
from triage.story.activities import tell_activity
from triage.story.calls import LOCAL_ACTIVITY, Calls, Done, local_call
from triage.story.decisions import tell_decision
from triage.story.endings import (
    tell_end,
    tell_standing,
    tell_start,
    tell_worker_trouble,
)
from triage.story.memory import Memory
from triage.story.parts import Beat, Kind, Story, beat, time_of
from triage.story.payloads import Fields, first
from triage.story.reviews import (
    Answer,
    read_answer,
    tell_signal,
    tell_starting_approval,
    tell_update,
)
from triage.story.waits import Timers, tell_attributes, tell_wait_over
from triage.story.words import named

ATTRIBUTES: Final = "_event_attributes"
_SUFFIX: Final = len(ATTRIBUTES)
_SIGNALED: Final = "workflow_execution_signaled"
_ACTIVITY_ENDS: Final = frozenset(
    f"activity_task_{end}" for end in ("completed", "failed", "timed_out", "canceled")
)
_INBOUND: Final = _ACTIVITY_ENDS | {
    _SIGNALED,
    "timer_fired",
    "workflow_execution_cancel_requested",
}
_ENDS: Final = frozenset(
    f"workflow_execution_{end}"
    for end in ("completed", "failed", "canceled", "terminated", "timed_out", "continued_as_new")
)
_SILENT: Final = frozenset(
    {
        "",
        "activity_task_cancel_requested",
        "workflow_execution_update_admitted",
        "workflow_execution_update_completed",
        "workflow_task_scheduled",
    }
)


def tell(
    events: Sequence[HistoryEvent], *, run_id: str | None = None, now: datetime | None = None
) -> Story:
    """Tell the story of one run.

    Args:
        events: its history, from the first event on.
        run_id: names the run; by default what its first event says.
        now: the time, for a run that may still go on; None leaves out how long ago things were.
    """
    return _Teller(events, now).tell(run_id)


class _Teller:
    """Goes through the events of one history once."""

    def __init__(self, events: Sequence[HistoryEvent], now: datetime | None) -> None:
        self._events = events
        self._now = now
        self._started = events[0].workflow_execution_started_event_attributes
        workflow_type = self._started.workflow_type.name
        self._memory = Memory(self._started.workflow_id, workflow_type, time_of(events[0]))
        self._memory.recorded = dict(_recorded_digests(events))
        self._answers = _answers(events)
        self._calls = Calls()
        self._timers = Timers()
        self._batch: list[HistoryEvent] = []
        self._seen_at = self._memory.began
        self._beats: list[Beat] = []
        self._ended = False
        self._handlers = self._immediate()

    def tell(self, run_id: str | None) -> Story:
        for event in self._events:
            self._beats += self._take(event)
        self._beats += self._deliver(None)
        self._beats.sort(key=lambda told: told.event_id)
        last = self._events[-1]
        if not self._ended:
            standing = tell_standing(self._memory, last, self._calls.open(), self._now)
            self._beats.append(standing)
        return Story(
            workflow_id=self._memory.workflow_id,
            run_id=run_id or self._started.original_execution_run_id,
            workflow_type=self._memory.workflow_type,
            status=self._status(),
            began=self._memory.began,
            beats=tuple(self._beats),
        )

    def _status(self) -> str:
        ends = [told.facts for told in self._beats if told.kind is Kind.ENDED]
        return str(ends[-1].get("status") or ends[-1]["execution"]) if ends else "running"

    def _immediate(self) -> dict[str, Callable[[HistoryEvent], Iterable[Beat]]]:
        """Return what tells the events that wait for no workflow task."""
        memory = self._memory
        return {
            "workflow_execution_started": lambda event: tell_start(memory, event),
            "workflow_task_started": self._begin_task,
            "workflow_task_completed": self._deliver,
            "workflow_task_failed": lambda event: tell_worker_trouble(memory, event),
            "workflow_task_timed_out": lambda event: tell_worker_trouble(memory, event),
            "activity_task_scheduled": self._calls.ask,
            "activity_task_started": self._calls.begin,
            "timer_started": lambda event: self._timers.set(memory, event),
            "timer_canceled": self._timers.drop,
            "upsert_workflow_search_attributes": lambda event: tell_attributes(memory, event),
            "workflow_execution_update_accepted": self._update,
            "marker_recorded": self._marker,
            **dict.fromkeys(_ENDS, self._end),
        }

    def _take(self, event: HistoryEvent) -> Iterable[Beat]:
        name = _name(event)
        if name in _INBOUND:
            self._batch.append(event)
            return ()
        if name in self._handlers:
            return self._handlers[name](event)
        if name in _SILENT:
            return ()
        return (beat(event, Kind.OTHER, f"also recorded: {name.replace('_', ' ')}"),)

    def _begin_task(self, event: HistoryEvent) -> tuple[Beat, ...]:
        self._seen_at = time_of(event)
        return ()

    def _deliver(self, task: HistoryEvent | None) -> Iterator[Beat]:
        """Tell what a workflow task was given; None is what no task was given any more."""
        batch, self._batch = self._batch, []
        now = self._seen_at if task is not None else None
        for answer in self._answers_of(task):
            # Answers are on record. What else in the batch would count came too late for it.
            if answer.review is not None:
                self._memory.desk.decide(answer.review)
        for event in batch:
            if _name(event) == _SIGNALED:
                yield from tell_signal(self._memory, event, now)
        for event in batch:
            if _name(event) != _SIGNALED:
                yield from self._inbound(event, seen=now is not None)

    def _answers_of(self, task: HistoryEvent | None) -> list[Answer]:
        answers = self._answers.get(task.event_id if task is not None else 0, [])
        return [answer for _, answer in answers if answer.accepted]

    def _inbound(self, event: HistoryEvent, *, seen: bool) -> Iterator[Beat]:
        if event.HasField("timer_fired_event_attributes"):
            yield from self._timers.fire(event)
        elif _name(event) in _ACTIVITY_ENDS:
            done = self._calls.end(event)
            if done is not None:
                yield from self._done(done, seen=seen)
        else:
            self._memory.canceled = True
            yield beat(event, Kind.CANCEL, "somebody asked to cancel the execution")

    def _done(self, done: Done, *, seen: bool) -> Iterator[Beat]:
        if done.call.name != ACTIVITY_DECIDE:
            yield from tell_activity(self._memory, done)
            return
        before = self._memory.proposal
        yield from tell_decision(self._memory, done, seen=seen)
        if self._memory.proposal is not before:
            yield from tell_starting_approval(self._memory, done.event)

    def _marker(self, event: HistoryEvent) -> Iterator[Beat]:
        done = local_call(event)
        if done is not None:
            yield from tell_activity(self._memory, done)
        elif event.marker_recorded_event_attributes.marker_name != LOCAL_ACTIVITY:
            name = named(event.marker_recorded_event_attributes.marker_name)
            yield beat(event, Kind.OTHER, f"also recorded: marker {name}")

    def _update(self, event: HistoryEvent) -> Iterator[Beat]:
        for answers in self._answers.values():
            for accepted, answer in answers:
                if accepted.event_id == event.event_id:
                    yield from tell_update(self._memory, event, answer)

    def _end(self, event: HistoryEvent) -> Iterator[Beat]:
        self._ended = True
        yield from self._deliver(None)
        yield from tell_wait_over(self._memory, event)
        yield from tell_end(self._memory, event)


def _name(event: HistoryEvent) -> str:
    """Name what an event is, such as ``timer_fired``; empty if this program does not know it."""
    attributes = event.WhichOneof("attributes")
    return attributes[:-_SUFFIX] if attributes else ""


def _recorded_digests(
    events: Sequence[HistoryEvent],
) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield, for each write that was sent, the digest that its approval had to carry."""
    for event in events:
        if event.HasField("activity_task_scheduled_event_attributes"):
            given = Fields(first(event.activity_task_scheduled_event_attributes.input))
            operation = given.fields("operation")
            version, digest = operation.number("version"), operation.text("approval_digest")
            if version is not None and digest:
                yield (operation.text("operation_id"), version), digest


def _answers(events: Sequence[HistoryEvent]) -> dict[int, list[tuple[HistoryEvent, Answer]]]:
    """Return the updates with their answers, by the workflow task that accepted them."""
    outcomes = {
        done.accepted_event_id: done.outcome
        for event in events
        if event.HasField("workflow_execution_update_completed_event_attributes")
        for done in (event.workflow_execution_update_completed_event_attributes,)
    }
    found: dict[int, list[tuple[HistoryEvent, Answer]]] = {}
    task = 0
    for event in events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            task = event.event_id
        elif event.HasField("workflow_execution_update_accepted_event_attributes"):
            answer = read_answer(event, outcomes.get(event.event_id))
            found.setdefault(task, []).append((event, answer))
    return found
