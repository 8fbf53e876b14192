"""Tells how long a run waited for a person and why it stopped, its timers and its attributes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from temporalio.api.history.v1 import HistoryEvent

from triage.contracts.approval import Verdict
from triage.contracts.search_attributes import TRIAGE_WAITING_SINCE
from triage.story.memory import Memory
from triage.story.parts import Beat, Kind, beat, time_of
from triage.story.payloads import Unreadable, read
from triage.story.words import labelled, listed, moment, named, quoted, span


class Timers:
    """The durable timers of a run."""

    def __init__(self) -> None:
        self._set: dict[int, tuple[timedelta, str]] = {}

    def set(self, memory: Memory, event: HistoryEvent) -> Iterator[Beat]:
        """Tell a timer that was set."""
        started = event.timer_started_event_attributes
        length = started.start_to_fire_timeout.ToTimedelta()
        summary = read(event.user_metadata.summary) if event.HasField("user_metadata") else None
        purpose = quoted(summary) if isinstance(summary, str) else _purpose(memory, event)
        self._set[event.event_id] = (length, purpose)
        text = f"a timer of {span(length)} is set{_about(purpose)}"
        yield beat(event, Kind.TIMER, text, state="set", seconds=length.total_seconds())

    def fire(self, event: HistoryEvent) -> Iterator[Beat]:
        """Tell a timer that went off."""
        started = event.timer_fired_event_attributes.started_event_id
        length, purpose = self._set.pop(started, (timedelta(), ""))
        text = f"the timer of {span(length)} went off{_about(purpose)}"
        yield beat(event, Kind.TIMER, text, state="fired", seconds=length.total_seconds())

    def drop(self, event: HistoryEvent) -> tuple[()]:
        """Forget a timer that is no longer needed, which is not worth telling."""
        self._set.pop(event.timer_canceled_event_attributes.started_event_id, None)
        return ()


def _purpose(memory: Memory, event: HistoryEvent) -> str:
    """Say what a timer is for: the last of the moments of a wait that it reaches."""
    ends = time_of(event) + event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta()
    reached = [(at, name) for name, at in memory.moments() if at <= ends]
    return max(reached)[1] if reached else ""


def _about(purpose: str) -> str:
    return f": {purpose}" if purpose else ""


def tell_attributes(memory: Memory, event: HistoryEvent) -> Iterator[Beat]:
    """Tell search attributes that were written, and the wait that they begin or end."""
    written = event.upsert_workflow_search_attributes_event_attributes.search_attributes
    values = {name: read(payload) for name, payload in sorted(written.indexed_fields.items())}
    memory.published.update({name: str(value) for name, value in values.items()})
    shown = ", ".join(f"{name}={_value(value)}" for name, value in values.items())
    yield beat(event, Kind.ATTRIBUTES, f"search attributes: {shown or 'none'}")
    if TRIAGE_WAITING_SINCE.name not in values:
        return
    since = values[TRIAGE_WAITING_SINCE.name]
    if since is None:
        yield from tell_wait_over(memory, event)
    else:
        memory.begin_wait(_moment(since, time_of(event)))
        yield tell_wait(memory, event)


def tell_wait(memory: Memory, event: HistoryEvent) -> Beat:
    """Tell what a person is waited for, and until when."""
    wait = memory.desk.wait
    if wait is None:
        return beat(event, Kind.WAITING, "waits for a person; on what is not readable here")
    until = f" until {moment(wait.deadline)}" if wait.deadline else ""
    what = f"{named(wait.operation_id)} at version {wait.version}"
    whom = "a person" if memory.desk.required == 1 else f"{memory.desk.required} people"
    return beat(
        event,
        Kind.WAITING,
        f"waits for {whom}{until} to decide on {what}, digest {named(wait.digest)}",
        operation_id=wait.operation_id,
        version=wait.version,
        digest=wait.digest,
        expires_at=wait.deadline.isoformat() if wait.deadline else None,
        approvals_required=wait.approvals_required if wait.approvals_required > 1 else None,
    )


def tell_wait_over(memory: Memory, event: HistoryEvent) -> Iterator[Beat]:
    """Tell that the run stopped waiting, why, and how long it had waited."""
    desk = memory.desk
    if not desk.waiting:
        return
    length = max(time_of(event) - (desk.since or time_of(event)), timedelta())
    memory.waited += length
    text = f"a person was waited for {span(length)}: {_why(memory, event)}"
    yield beat(event, Kind.WAITED, text, waited_seconds=round(length.total_seconds(), 3))
    desk.close()


def _why(memory: Memory, event: HistoryEvent) -> str:
    decided, wait, now = memory.desk.decided, memory.desk.wait, time_of(event)
    if event.HasField("workflow_execution_continued_as_new_event_attributes"):
        return "the wait goes on in the next execution"
    if memory.canceled:
        return "the execution was canceled"
    if memory.edited:
        return "the request was edited, so the operation was withdrawn"
    if decided is not None:
        done = "approved" if decided.verdict is Verdict.APPROVE else "rejected"
        people = memory.desk.approved_by if decided.verdict is Verdict.APPROVE else ()
        return f"{done} by {listed(people or [decided.approver])}"
    is_late = wait is not None and wait.deadline is not None and now >= wait.deadline
    return "nobody decided in time" if is_late else "the wait was ended"


def _moment(value: object, otherwise: datetime) -> datetime:
    try:
        moment_given = datetime.fromisoformat(str(value))
    except ValueError:
        return otherwise
    return moment_given if moment_given.tzinfo else moment_given.replace(tzinfo=UTC)


def _value(value: object) -> str:
    if value is None:
        return "(cleared)"
    if isinstance(value, str):
        return named(value)
    if isinstance(value, list):
        return labelled(str(item) for item in value)
    return value.value if isinstance(value, Unreadable) else named(str(value))
