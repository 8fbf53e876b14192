"""What a story is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from pydantic import JsonValue
from temporalio.api.history.v1 import HistoryEvent


class Kind(StrEnum):
    """What a beat is about."""

    STARTED = "started"
    PINNED = "pinned"
    MODEL = "model"
    TOOL = "tool"
    PROPOSED = "proposed"
    WAITING = "waiting"
    WAITED = "waited"
    REVIEW = "review"
    EDIT = "edit"
    MESSAGE = "message"
    VERIFIED = "verified"
    TIMER = "timer"
    WRITE = "write"
    ATTRIBUTES = "attributes"
    WORKER = "worker"
    CANCEL = "cancel"
    CARRIED = "carried"
    ENDED = "ended"
    FAILURE = "failure"
    STANDING = "standing"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Beat:
    """One thing that happened.

    Attributes:
        event_id: the event of the history that tells it.
        at: when it was recorded.
        kind: what it is about.
        text: one line for people; names and reasons in it are escaped, see `words`.
        facts: the same for programs, as far as they may want to act on it.
    """

    event_id: int
    at: datetime
    kind: Kind
    text: str
    facts: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Story:
    """What happened in one run, in order.

    Attributes:
        run_id: names its latest execution that is told.
        status: that of its response if it has one, else Temporal's word for the execution.
        earlier: the run ids of its earlier executions that are told as well, in order.
    """

    workflow_id: str
    run_id: str
    workflow_type: str
    status: str
    began: datetime
    beats: tuple[Beat, ...]
    earlier: tuple[str, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """Return the story for programs."""
        return {
            "workflow_id": self.workflow_id,
            "run_id": self.run_id,
            "earlier_run_ids": [*self.earlier],
            "status": self.status,
            "story": [self._beat(beat) for beat in self.beats],
        }

    def _beat(self, beat: Beat) -> dict[str, JsonValue]:
        return {
            "at": beat.at.isoformat(timespec="milliseconds"),
            "after_seconds": round((beat.at - self.began).total_seconds(), 3),
            "kind": beat.kind.value,
            "text": beat.text,
            "event_id": beat.event_id,
            **beat.facts,
        }


def beat(event: HistoryEvent, kind: Kind, text: str, **facts: JsonValue) -> Beat:
    """Return a beat that `event` tells; facts that are null are left out."""
    told = {name: value for name, value in facts.items() if value is not None}
    return Beat(event.event_id, time_of(event), kind, text, told)


def time_of(event: HistoryEvent) -> datetime:
    """Return when an event was recorded."""
    moment: datetime = event.event_time.ToDatetime(tzinfo=UTC)
    return moment
