"""Tells how a run ended, or where it stands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from temporalio.api.enums.v1 import TimeoutType
from temporalio.api.history.v1 import HistoryEvent

from triage.contracts.failures import FailureClass
from triage.contracts.incident import LoopStatus
from triage.contracts.search_attributes import TRIAGE_FAILURE, TRIAGE_STATUS
from triage.story.calls import Call
from triage.story.guesses import guess_note
from triage.story.memory import Memory
from triage.story.parts import Beat, Kind, beat, time_of
from triage.story.payloads import Fields, failure_of, first
from triage.story.remedies import remedy
from triage.story.words import counted, labelled, listed, moment, named, span

LOOP_MEANING: Final[dict[str, str]] = {
    LoopStatus.COMPLETE: "the adapter finished after reading",
    LoopStatus.UNSUPPORTED: "the adapter finished without reading anything",
    LoopStatus.DENIED: "the last proposal is no read of a reference that it was given",
    LoopStatus.REPEATED: "the last proposal is a read that was made before",
    LoopStatus.EXHAUSTED: "the limit is spent, and the adapter has not finished",
    LoopStatus.INVALID: "the last answer is no decision",
    LoopStatus.ADAPTER_ERROR: "the adapter failed",
}
_TIMEOUTS: Final = {
    TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START: "nobody took it up in time",
    TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE: "whoever took it up did not answer in time",
}


def tell_end(memory: Memory, event: HistoryEvent) -> Iterator[Beat]:
    """Tell how the execution ended."""
    if event.HasField("workflow_execution_completed_event_attributes"):
        yield from _completed(memory, event)
    elif event.HasField("workflow_execution_failed_event_attributes"):
        yield from _failed(memory, event)
    else:
        yield _stopped(memory, event)


def _completed(memory: Memory, event: HistoryEvent) -> Iterator[Beat]:
    response = Fields(first(event.workflow_execution_completed_event_attributes.result))
    status, failure = response.text("status"), response.text("failure")
    summary = _summary(memory, response) if status else "its response is not readable here"
    if not status:
        status = memory.published.get(TRIAGE_STATUS.name, "completed")
        failure = memory.published.get(TRIAGE_FAILURE.name, "")
    text = f"{named(status)}: {summary}"
    yield beat(event, Kind.ENDED, text, execution="completed", status=status)
    yield from tell_failure(event, failure, response.text("reason"))


def _summary(memory: Memory, response: Fields) -> str:
    if "reads" in response:
        meaning = LOOP_MEANING.get(response.text("status"), "")
        return f"{meaning}; {counted(response.number('reads') or 0, 'read')}".removeprefix("; ")
    parts = []
    if route := response.text("route"):
        cited = response.texts("evidence_ids")
        guess = guess_note(response.text("status"), response.text("failure"), route, cited)
        parts.append(f"route {named(route)}{guess}")
    if response.texts("labels"):
        parts.append(f"labels {labelled(response.texts('labels'))}")
    if response.text("owner"):
        parts.append(f"owner {named(response.text('owner'))}")
    if response.texts("evidence_ids"):
        parts.append(f"evidence {listed(response.texts('evidence_ids'))}")
    parts.append(f"reason {memory.said(response.text('reason'))}")
    steps, retries = response.number("steps") or 0, response.number("retries") or 0
    parts.append(f"{counted(steps, 'step')}, of them {counted(retries, 'retry')}")
    if memory.waited:
        parts.append(f"a person was waited for {span(memory.waited)} in all")
    return "; ".join(parts)


def tell_failure(event: HistoryEvent, name: str, reason: str = "") -> Iterator[Beat]:
    """Tell what a failure means: its group, who fixes it and the first thing to do."""
    if not name:
        return
    if name not in set(FailureClass):
        yield beat(event, Kind.FAILURE, f"failure {named(name)}", failure=name)
        return
    info = remedy(FailureClass(name), reason)
    yield beat(
        event,
        Kind.FAILURE,
        f"failure {name} ({info.group}), fixed by: {info.owner}; next step: {info.next_step}",
        failure=name,
        group=info.group,
        owner=info.owner,
        next_step=info.next_step,
    )


def _failed(memory: Memory, event: HistoryEvent) -> Iterator[Beat]:
    failure = event.workflow_execution_failed_event_attributes.failure
    kind, message = failure_of(failure)
    text = f"the execution failed without a response: {memory.failed(kind, message)}"
    yield beat(event, Kind.ENDED, text, execution="failed")
    yield from tell_failure(event, kind if kind in set(FailureClass) else "")


def _stopped(memory: Memory, event: HistoryEvent) -> Beat:
    """Tell an end that came from outside, or that carries on elsewhere."""
    if event.HasField("workflow_execution_terminated_event_attributes"):
        reason = event.workflow_execution_terminated_event_attributes.reason
        why = f", with the reason {memory.said(reason)}" if reason else ", with no reason given"
        text = f"somebody terminated the execution{why}: there is no response"
        return beat(event, Kind.ENDED, text, execution="terminated")
    if event.HasField("workflow_execution_timed_out_event_attributes"):
        text = "the execution timed out: there is no response"
        return beat(event, Kind.ENDED, text, execution="timed_out")
    if event.HasField("workflow_execution_continued_as_new_event_attributes"):
        new = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
        text = f"the execution carries on as the run {named(new)}"
        return beat(event, Kind.ENDED, text, execution="continued_as_new", new_run_id=new)
    text = "the execution was canceled: there is no response"
    return beat(event, Kind.ENDED, text, execution="canceled")


def tell_join(event: HistoryEvent) -> Beat:
    """Tell that a run carries on under a fresh history, which is told next."""
    new = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    text = (
        f"the history had grown long: the run carries on under a fresh one, as the run"
        f" {named(new)}, with all that it knows"
    )
    return beat(event, Kind.CARRIED, text, new_run_id=new)


def tell_worker_trouble(memory: Memory, event: HistoryEvent) -> Iterator[Beat]:
    """Tell that a worker could not carry the run on at once; another attempt did, or will."""
    if event.HasField("workflow_task_timed_out_event_attributes"):
        late = event.workflow_task_timed_out_event_attributes.timeout_type
        why = _TIMEOUTS.get(late, "it was not done in time")
        yield beat(event, Kind.WORKER, f"a worker's task was given to another: {why}")
        return
    failed = event.workflow_task_failed_event_attributes
    if failed.new_run_id:
        text = f"the execution was reset to here; it is the run {named(failed.new_run_id)} now"
        yield beat(event, Kind.WORKER, text)
        return
    kind, message = failure_of(failed.failure)
    detail = f": {memory.failed(kind, message)}" if kind or message else ""
    yield beat(event, Kind.WORKER, f"a worker could not carry the run on{detail}")


def tell_standing(
    memory: Memory, last: HistoryEvent, open_calls: list[Call], now: datetime | None
) -> Beat:
    """Tell where a run stands that has not ended."""
    at = now or time_of(last)
    text, facts = _standing(memory, open_calls, now), {"waits_for_person": memory.desk.waiting}
    return Beat(last.event_id + 1, at, Kind.STANDING, text, facts)


def _standing(memory: Memory, open_calls: list[Call], now: datetime | None) -> str:
    if memory.desk.waiting:
        return _waits(memory, now)
    if open_calls:
        listed_calls = [_asked(call, now) for call in open_calls]
        return f"waits for {'; '.join(listed_calls)}"
    return "a worker has to carry it on"


def _waits(memory: Memory, now: datetime | None) -> str:
    since, wait = memory.desk.since, memory.desk.wait
    began = f"since {moment(since)}{_ago(since, now)}" if since else ""
    if wait is None:
        return f"waits for a person {began}; on what is not readable here"
    words = (memory.workflow_id, wait.operation_id)
    command = f"triage approve {' '.join(map(shlex.quote, words))} --version {wait.version}"
    # What cannot be typed as it looks is not offered for typing.
    hint = f": {command}" if all(word.isprintable() for word in words) else ""
    until = f", until {moment(wait.deadline)}" if wait.deadline else ""
    what = f"{named(wait.operation_id)} at version {wait.version}"
    given = _given(memory)
    return f"waits for a person {began}{until}, to decide on {what}{given}{hint}"


def _given(memory: Memory) -> str:
    """Say who has approved so far, where one person is not enough."""
    desk = memory.desk
    if desk.required == 1:
        return ""
    by = f" ({listed(desk.approved_by)})" if desk.approved_by else ""
    return f"; {len(desk.approved_by)} of {desk.required} approvals are given{by}"


def _asked(call: Call, now: datetime | None) -> str:
    return f"{named(call.name)}, asked at {moment(call.asked_at)}{_ago(call.asked_at, now)}"


def _ago(then: datetime, now: datetime | None) -> str:
    return f" ({span(now - then)} ago)" if now else ""
