"""The recorded histories and their index, as tests read them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from temporalio.client import WorkflowHistory

from triage.contracts.deflated import ENCODING, inflate
from triage.replay import recorded_outcome
from triage.resources import fixtures_path

FOLDER: Final = fixtures_path("histories")
INDEX: Final = FOLDER / "index.json"
COMMANDS: Final = FOLDER / "commands.json"
_DEFLATED: Final = base64.b64encode(ENCODING).decode()
_EVENT: Final = "EVENT_TYPE_WORKFLOW_EXECUTION_"

Index = dict[str, dict[str, Any]]


def read_index() -> Index:
    """Return what each file holds: its workflow type, how it ends, and with which response."""
    index: Index = json.loads(INDEX.read_text(encoding="utf-8"))
    return index


def history_files() -> list[Path]:
    """Return the recorded histories, by name."""
    return sorted(set(FOLDER.glob("*.json")) - {INDEX, COMMANDS})


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a file."""
    events: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["events"]
    return events


def events_text(events: list[dict[str, Any]]) -> str:
    """Return events as the text of a history."""
    return json.dumps({"events": events})


def index_entry(history: WorkflowHistory) -> dict[str, Any]:
    """Return what the index says of a history; `ends` is as `Recording.ends` has it."""
    started = history.events[0].workflow_execution_started_event_attributes
    outcome = recorded_outcome(history)
    response = outcome.value if outcome else None
    ends = _ending(history)
    if outcome and outcome.failure:
        ends = f"failure/{outcome.failure[0]}"
    elif response:
        ends = "/".join(filter(None, (response["status"], response.get("failure"))))
    return {"workflow": started.workflow_type.name, "ends": ends, "response": response}


def _ending(history: WorkflowHistory) -> str:
    last = str(json.loads(history.to_json())["events"][-1]["eventType"])
    ended = last.removeprefix(_EVENT).lower()
    return ended if ended in {"canceled", "continued_as_new"} else "open"


def payloads(value: Any) -> Iterator[bytes]:  # noqa: ANN401 - any JSON value
    """Return the decoded data of every payload in an event, as it was before it was deflated."""
    if isinstance(value, dict):
        if is_payload(value) and isinstance(value.get("data"), str):
            yield base64.b64decode(inflated(value)["data"])
        else:
            for item in value.values():
                yield from payloads(item)
    elif isinstance(value, list):
        for item in value:
            yield from payloads(item)


def is_payload(value: dict[str, Any]) -> bool:
    """Whether an object in a history is a payload."""
    return "encoding" in value.get("metadata", {})


def inflated(payload: dict[str, Any]) -> dict[str, Any]:
    """Return a payload as it was before it was deflated."""
    if payload["metadata"]["encoding"] != _DEFLATED:
        return payload
    document = inflate(base64.b64decode(payload["data"]))
    return {
        "metadata": {"encoding": base64.b64encode(b"json/plain").decode()},
        "data": base64.b64encode(document).decode(),
    }
