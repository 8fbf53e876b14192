"""Tells the story of a run from its history alone: no worker, no query and no clock is needed.

Why it exists: when a run surprised somebody, its worker may be gone and its code may have changed.
The history holds all that happened; this says it in words, in order, with what came of each step.
The issue's own text is never told.

A run whose history has grown long continues as new, in another execution. Told together, they are
one story; told alone, a later one begins with what the one before it handed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from temporalio.api.history.v1 import HistoryEvent, WorkflowExecutionStartedEventAttributes

from triage.story.endings import tell_standing
from triage.story.executions import Teller, recorded_digests
from triage.story.memory import Memory
from triage.story.parts import Beat, Kind, Story, time_of

Events = Sequence[HistoryEvent]


def tell(events: Events, *, run_id: str | None = None, now: datetime | None = None) -> Story:
    """Tell the story of one execution of a run.

    Args:
        events: its history, from the first event on.
        run_id: names the execution; by default what its first event says.
        now: the time, for a run that may still go on; None leaves out how long ago things were.
    """
    return tell_chain([events], run_id=run_id, now=now)


def tell_chain(
    chain: Sequence[Events],
    *,
    run_id: str | None = None,
    now: datetime | None = None,
    missing: str = "",
) -> Story:
    """Tell executions of a run that carry on one another as one story.

    Args:
        chain: the history of each, in order.
        run_id: names the last one; by default what its first event says.
        now: the time, for a run that may still go on; None leaves out how long ago things were.
        missing: why the execution before the first one is not told, if there was one.
    """
    first = _started(chain[0])
    memory = Memory(first.workflow_id, first.workflow_type.name, time_of(chain[0][0]))
    memory.recorded = {key: digest for one in chain for key, digest in recorded_digests(one)}
    names = _run_ids(chain, run_id)
    beats: list[Beat] = []
    for number, (name, events) in enumerate(zip(names, chain, strict=True)):
        teller = Teller(
            events,
            memory,
            follows=number > 0,
            goes_on=number + 1 < len(chain),
            missing=missing,
        )
        beats += _of_run(teller.tell(), name, is_one_of_many=len(chain) > 1)
    if not teller.ended:
        standing = tell_standing(memory, chain[-1][-1], teller.open_calls(), now)
        beats += _of_run([standing], names[-1], is_one_of_many=len(chain) > 1)
    return Story(
        workflow_id=memory.workflow_id,
        run_id=names[-1],
        workflow_type=memory.workflow_type,
        status=_status(beats),
        began=memory.began,
        beats=tuple(beats),
        earlier=names[:-1],
    )


def _started(events: Events) -> WorkflowExecutionStartedEventAttributes:
    return events[0].workflow_execution_started_event_attributes


def _run_ids(chain: Sequence[Events], last: str | None) -> tuple[str, ...]:
    """Name the executions: each says from which one it carries on."""
    earlier = (_started(events).continued_execution_run_id for events in chain[1:])
    return (*earlier, last or _started(chain[-1]).original_execution_run_id)


def _of_run(beats: list[Beat], run_id: str, *, is_one_of_many: bool) -> list[Beat]:
    """Say in which execution each beat was: event ids begin anew in each."""
    if not is_one_of_many:
        return beats
    return [replace(beat, facts={"run_id": run_id, **beat.facts}) for beat in beats]


def _status(beats: list[Beat]) -> str:
    ends = [told.facts for told in beats if told.kind is Kind.ENDED]
    return str(ends[-1].get("status") or ends[-1]["execution"]) if ends else "running"
