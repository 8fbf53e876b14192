"""Goes through the events of one execution of a run, in the order in which the run saw them.

Events reach a run in batches, one a workflow task, so what it made of a message depends on the
batch: first all messages in it are looked at, then everything else, at the time the task began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from triage.contracts.names import ACTIVITY_DECIDE, ACTIVITY_VERIFY_APPROVAL
from triage.story.activities import tell_activity
from triage.story.beginnings import tell_start
from triage.story.calls import LOCAL_ACTIVITY, Call, Calls, Done, answer_beside, local_call
from triage.story.decisions import tell_decision
from triage.story.endings import (
    tell_end,
    tell_join,
    tell_worker_trouble,
)
from triage.story.memory import Memory
from triage.story.parts import Beat, Kind, beat, time_of
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
        "workflow_task_scheduled",
    }
)


class Teller:
    """Goes through the events of one execution once.

    Args:
        events: its history, from the first event on.
        memory: what is known of the run; it learns from this execution.
        follows: whether the execution that this one carries on from has just been told.
        goes_on: whether the execution that carries this one on is told next.
        missing: why the execution that this one carries on from is not told, if one should be.

    Attributes:
        ended: whether the run has ended in this execution.
    """

    def __init__(
        self,
        events: Sequence[HistoryEvent],
        memory: Memory,
        *,
        follows: bool = False,
        goes_on: bool = False,
        missing: str = "",
    ) -> None:
        self._events = events
        self._memory = memory
        self._follows = follows
        self._goes_on = goes_on
        self._missing = missing
        self._answers = _answers(events)
        self._verified = _verified(events)
        self._calls = Calls()
        self._timers = Timers()
        self._batch: list[HistoryEvent] = []
        self._seen_at = time_of(events[0])
        self.ended = False
        self._handlers = self._immediate()

    def tell(self) -> list[Beat]:
        """Return what happened, in order."""
        beats: list[Beat] = []
        for event in self._events:
            beats += self._take(event)
        beats += self._deliver(None)
        return sorted(beats, key=lambda told: told.event_id)

    def open_calls(self) -> list[Call]:
        """Return the activities that nobody has answered yet."""
        return self._calls.open()

    def _immediate(self) -> dict[str, Callable[[HistoryEvent], Iterable[Beat]]]:
        """Return what tells the events that wait for no workflow task."""
        memory = self._memory
        return {
            "workflow_execution_started": self._start,
            "workflow_task_started": self._begin_task,
            "workflow_task_completed": self._deliver,
            "workflow_task_failed": lambda event: tell_worker_trouble(memory, event),
            "workflow_task_timed_out": lambda event: tell_worker_trouble(memory, event),
            "activity_task_scheduled": lambda event: self._calls.ask(event, self._seen_at),
            "activity_task_started": self._calls.begin,
            "timer_started": lambda event: self._timers.set(memory, event),
            "timer_canceled": self._timers.drop,
            "upsert_workflow_search_attributes": lambda event: tell_attributes(memory, event),
            "workflow_execution_update_accepted": self._update,
            "workflow_execution_update_completed": self._update,
            "marker_recorded": self._marker,
            **dict.fromkeys(_ENDS, self._end),
        }

    def _start(self, event: HistoryEvent) -> Iterable[Beat]:
        return () if self._follows else tell_start(self._memory, event, self._missing)

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
        self._memory.looped_since = self._memory.looped_since or now
        self._memory.desk.again = self._verified_by(task)
        for answer in self._answers_of(task):
            self._foresee(answer)
        for event in batch:
            if _name(event) == _SIGNALED:
                yield from tell_signal(self._memory, event, now)
        for event in batch:
            if _name(event) != _SIGNALED:
                yield from self._inbound(event, seen=now is not None)

    def _answers_of(self, task: HistoryEvent | None) -> list[Answer]:
        answers = self._answers.get(task.event_id if task is not None else 0, [])
        return [answer for _, answer in answers]

    def _verified_by(self, task: HistoryEvent | None) -> frozenset[str]:
        """Return the tokens whose verification a task asks for."""
        return self._verified.get(task.event_id, frozenset()) if task else frozenset()

    def _foresee(self, answer: Answer) -> None:
        """Take an answer that is on record: what else in the batch would count came after it."""
        review, desk = answer.review, self._memory.desk
        if review is None:
            return
        if review.token is not None and not desk.local:
            desk.asked.append(review)
            # It counts from when its signature is verified on: others may overtake it until then.
            desk.granted += [review] if answer.accepted else []
        elif answer.accepted:
            desk.take(review)

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
            yield from self._done(done, seen=True)
            if (answer := answer_beside(done)) is not None:
                yield from self._done(answer, seen=True)
        elif event.marker_recorded_event_attributes.marker_name != LOCAL_ACTIVITY:
            name = named(event.marker_recorded_event_attributes.marker_name)
            yield beat(event, Kind.OTHER, f"also recorded: marker {name}")

    def _update(self, event: HistoryEvent) -> Iterator[Beat]:
        """Tell an update where it is answered, if it is: only then it is known what it came to."""
        done = event.workflow_execution_update_completed_event_attributes
        wanted = done.accepted_event_id or event.event_id
        for answers in self._answers.values():
            for accepted, answer in answers:
                if accepted.event_id == wanted and answer.is_open == (event is accepted):
                    yield from tell_update(self._memory, accepted, answer)

    def _end(self, event: HistoryEvent) -> Iterator[Beat]:
        yield from self._deliver(None)
        if self._goes_on:
            yield tell_join(event)
            return
        self.ended = True
        yield from tell_wait_over(self._memory, event)
        yield from tell_end(self._memory, event)


def _name(event: HistoryEvent) -> str:
    """Name what an event is, such as ``timer_fired``; empty if this program does not know it."""
    attributes = event.WhichOneof("attributes")
    return attributes[:-_SUFFIX] if attributes else ""


def recorded_digests(
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


def _verified(events: Sequence[HistoryEvent]) -> dict[int, frozenset[str]]:
    """Return the tokens whose verification was asked for, by the workflow task that asked."""
    found: dict[int, frozenset[str]] = {}
    for event in events:
        asked = event.activity_task_scheduled_event_attributes
        if asked.activity_type.name == ACTIVITY_VERIFY_APPROVAL:
            task = asked.workflow_task_completed_event_id
            token = Fields(first(asked.input)).text("token")
            found[task] = found.get(task, frozenset()) | ({token} - {""})
    return found
