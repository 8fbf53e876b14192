"""The recorded histories as events that a test may change before their story is told."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory

from tests.replay.histories import history_files, inflated, is_payload, read_events, read_index
from triage.replay import read_history
from triage.story.parts import Beat, Kind, Story
from triage.story.telling import tell, tell_chain

Events = list[dict[str, Any]]
FILES: Final = history_files()
INDEX: Final = read_index()
TRIAGES: Final = [path for path in FILES if INDEX[path.stem]["workflow"] == "IssueTriage"]


def stem(path: Path) -> str:
    """Name a file as its test."""
    return path.stem


def events_of(name: str) -> Events:
    """Return the events of a recorded history."""
    [path] = [path for path in FILES if path.stem == name]
    return read_events(path)


def parsed(events: Events) -> list[HistoryEvent]:
    """Return events as the SDK has them."""
    return list(WorkflowHistory.from_json("story", {"events": events}).events)


def told(name: str) -> Story:
    """Tell the story of a recorded history."""
    return tell(parsed(events_of(name)))


def chain_of(path: Path) -> list[Path]:
    """Return a recorded execution with the recorded one that it carries on, if it does."""
    started = read_events(path)[0]["workflowExecutionStartedEventAttributes"]
    before = started.get("continuedExecutionRunId")
    return [*(other for other in FILES if before and run_id_of(other) == before), path]


def run_id_of(path: Path) -> str:
    """Return the run id of a recorded execution."""
    started = read_events(path)[0]["workflowExecutionStartedEventAttributes"]
    return str(started["originalExecutionRunId"])


def told_whole(path: Path) -> Story:
    """Tell a recorded execution together with the one that it carries on, if it does."""
    return tell_chain([read_history(one).events for one in chain_of(path)])


def of_kind(story: Story, kind: Kind) -> list[Beat]:
    """Return the beats of one kind."""
    return [beat for beat in story.beats if beat.kind is kind]


def text_of(story: Story) -> str:
    """Return all that a story says."""
    return "\n".join(beat.text for beat in story.beats)


def payload(data: object, encoding: str = "json/plain") -> dict[str, Any]:
    """Return a payload as a history has it."""
    return {
        "metadata": {"encoding": base64.b64encode(encoding.encode()).decode()},
        "data": base64.b64encode(json.dumps(data).encode()).decode(),
    }


def changed(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value in which each payload is changed."""
    if isinstance(value, dict):
        if is_payload(value):
            return change(inflated(value))
        return {name: changed(item, change) for name, item in value.items()}
    if isinstance(value, list):
        return [changed(item, change) for item in value]
    return value
