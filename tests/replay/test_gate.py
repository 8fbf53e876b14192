"""The replay gate itself: it fails for what it must fail for, and never hangs."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.replay import child
from tests.replay.conftest import Answers, Once
from tests.replay.histories import FOLDER, events_text, read_events

Events = list[dict[str, Any]]
Spoil = Callable[[Events], Events]

RUN: Final = FOLDER / "completed-approved-by-signal.json"


def _numbered(events: Events) -> Events:
    return [{**event, "eventId": str(n)} for n, event in enumerate(events, start=1)]


def _at(events: Events, kind: str) -> int:
    """Return where the first event of a kind is."""
    return [event["eventType"] for event in events].index(f"EVENT_TYPE_{kind}")


def _swapped(events: Events) -> Events:
    """The search attributes are written after the timer starts, not before."""
    first, second = _at(events, "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES"), _at(events, "TIMER_STARTED")
    assert first + 1 == second
    return _numbered([*events[:first], events[second], events[first], *events[second + 1 :]])


def _without_a_command(events: Events) -> Events:
    """The timer of the wait is missing."""
    gone = {_at(events, "TIMER_STARTED"), _at(events, "TIMER_CANCELED")}
    return _numbered([event for n, event in enumerate(events) if n not in gone])


def _with_a_command(events: Events) -> Events:
    """The search attributes are written twice."""
    at = _at(events, "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES")
    return _numbered([*events[:at], events[at], *events[at:]])


def _other_activity(events: Events) -> Events:
    """The model was asked by an activity of another name."""
    scheduled = json.loads(json.dumps(events[_at(events, "ACTIVITY_TASK_SCHEDULED")]))
    scheduled["activityTaskScheduledEventAttributes"]["activityType"]["name"] = "ask_model"
    return [scheduled if e["eventId"] == scheduled["eventId"] else e for e in events]


def _other_result(events: Events) -> Events:
    """The run answered something else."""
    last = json.loads(json.dumps(events[-1]))
    [payload] = last["workflowExecutionCompletedEventAttributes"]["result"]["payloads"]
    response = json.loads(base64.b64decode(payload["data"])) | {"owner": "another-team"}
    payload["data"] = base64.b64encode(json.dumps(response).encode()).decode()
    return [*events[:-1], last]


def _unknown_type(events: Events) -> Events:
    return [*events[:-1], {**events[-1], "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_ADMIRED"}]


def _untyped(events: Events) -> Events:
    return [*events[:-1], {**events[-1], "eventType": 9_999}]


def _bare(events: Events) -> Events:
    """Every event has its type, and none says anything."""
    return [{k: v for k, v in e.items() if not k.endswith("Attributes")} for e in events]


def _started_twice(events: Events) -> Events:
    return _numbered([events[0], *events])


def _unended_task(events: Events) -> Events:
    """A workflow task starts, and something else comes before its end."""
    at = _at(events, "WORKFLOW_TASK_COMPLETED")
    return _numbered([*events[:at], events[at - 2], *events[at:]])


def _start_without(field: str) -> Spoil:
    """The start of the workflow lacks something that the SDK needs."""

    def spoil(events: Events) -> Events:
        start = json.loads(json.dumps(events[0]))
        del start["workflowExecutionStartedEventAttributes"][field]
        return [start, *events[1:]]

    return spoil


SPOILED: Final[dict[Spoil, str]] = {
    _swapped: "Nondeterminism",
    _without_a_command: "Nondeterminism",
    _with_a_command: "Nondeterminism",
    _other_activity: "does not match activity type",
    _other_result: "another result",
    _unknown_type: "unknown type",
    _untyped: "unknown type",
    _bare: "unknown type or without their attributes",
    _started_twice: "the start of one workflow",
    _unended_task: "starts and does not end",
    _start_without("originalExecutionRunId"): "the start of one workflow",
    _start_without("workflowType"): "the start of one workflow",
    _start_without("taskQueue"): "the start of one workflow",
    lambda events: [*events[:5], *events[6:]]: "missing or repeated events",
    lambda events: events[:1]: "begins with the start",
    lambda _: []: "begins with the start",
}


def _mangled(events: Events, seed: int) -> Events:
    """Move, drop or double events, or drop a field, at random."""
    random = Random(seed)  # noqa: S311 - no secret
    mangled = json.loads(json.dumps(events))
    for _ in range(random.randint(1, 3)):
        event = mangled.pop(random.randrange(len(mangled)))
        attributes = next(v for k, v in event.items() if k.endswith("Attributes"))
        match random.randrange(4):
            case 0:
                mangled.insert(random.randrange(len(mangled)), event)
            case 1:
                mangled += [event, event]
            case 2 if attributes:
                del attributes[random.choice(sorted(attributes))]
                mangled.insert(int(event["eventId"]) - 1, event)
    return _numbered(mangled)


MANGLED: Final = 60
MALFORMED: Final[dict[str, bytes]] = {
    "empty": b"",
    "not-json": b"{",
    "not-utf-8": b"\xff\xfe{}",
    "another-document": b'{"events": 7}',
    "list": b"[]",
    "numbers-for-events": b'{"events": [1, 2]}',
    "no-ids": b'{"events": [{"eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED"}]}',
    "too-deep": b"[" * 100_000,
}


@pytest.fixture(scope="module")
def verdicts(once: Once, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What the gate says of spoiled files, all in one process, with a good one at the end."""
    return once("spoiled", lambda: _replay_spoiled(tmp_path_factory.mktemp("spoiled")))


def _replay_spoiled(folder: Path) -> Answers:
    events = read_events(RUN)
    files = {f"spoiled-{n}": events_text(spoil(events)) for n, spoil in enumerate(SPOILED)}
    files |= {f"mangled-{n}": events_text(_mangled(events, n)) for n in range(MANGLED)}
    contents = {name: text.encode() for name, text in files.items()} | MALFORMED
    paths = [folder / f"{name}.json" for name in contents]
    for path in paths:
        path.write_bytes(contents[path.stem])
    return child.replay([*paths, folder / "missing.json", RUN])


@pytest.mark.parametrize(("number", "complaint"), [*enumerate(SPOILED.values())])
def test_a_history_that_does_not_fit_fails(verdicts: Answers, number: int, complaint: str) -> None:
    """A command that was moved, added, removed or changed fails the gate, as do broken events."""
    verdict = verdicts[f"spoiled-{number}"]
    assert not verdict["ok"]
    assert complaint in verdict["error"]


@pytest.mark.parametrize("name", MALFORMED)
def test_a_file_that_is_no_history_is_refused(verdicts: Answers, name: str) -> None:
    """Whatever the file holds, the answer is one sentence that quotes nothing of it."""
    assert not verdicts[name]["ok"]
    assert "the file is not a workflow history in JSON" == verdicts[name]["error"]


def test_a_mangled_history_is_answered(verdicts: Answers) -> None:
    """Whatever was done to a history, the gate says whether it fits; the SDK alone would hang."""
    answers = [verdicts[f"mangled-{n}"] for n in range(MANGLED)]
    assert [] == [answer for answer in answers if "no end within" in (answer["error"] or "")]
    assert any(not answer["ok"] for answer in answers)


NEVER_ENDS: Final = """
import asyncio, sys
from triage import replay

async def never(*_):
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

replay._file_failure = never
sys.exit(asyncio.run(replay.replay_files(["a", "b"], [], limit_seconds=0.2)))
"""


def test_a_replay_that_never_ends_is_reported() -> None:
    """A history that hangs the SDK all the same has a time limit, and so has the next one."""
    answers = child.run_code(NEVER_ENDS)
    assert ["no end within 0.2 seconds"] * 2 == [answer["error"] for answer in answers.values()]


def test_one_bad_file_does_not_hide_the_others(verdicts: Answers) -> None:
    """A missing file is reported as such, and a good history after bad ones still replays."""
    assert "the file cannot be read" == verdicts["missing"]["error"]
    assert verdicts[RUN.stem]["ok"], verdicts[RUN.stem]["error"]


ASKS_TWICE: Final = """
_decide = decide
async def decide(request, timeout_ms, **how):
    await _decide(request, timeout_ms, **how)
    return await _decide(request, timeout_ms, **how)
"""
NEVER_ASKS: Final = """
from triage.contracts.payloads import DecideOutcome
async def decide(request, timeout_ms, **how):
    return DecideResult(outcome=DecideOutcome.TIMEOUT)
"""
READS_LATER: Final = """
_decide, _read, _later = decide, read, []
async def read(tool, request, attempts):
    _later.append((tool, request, attempts))
    return ReadResult(id="owners-api", tool=tool.name, source="", locator="", digest="")
async def decide(request, timeout_ms, **how):
    result = await _decide(request, timeout_ms, **how)
    while _later:
        await _read(*_later.pop())
    return result
"""
ANSWERS_OTHERWISE: Final = """
_conclude = conclude
def conclude(state, request_id, ending):
    return _conclude(state, request_id, Ending(ending.status, "because", ending.failure))
"""
CHANGES: Final = {
    "an activity added": ("calls.py", ASKS_TWICE, "Nondeterminism"),
    "an activity removed": ("calls.py", NEVER_ASKS, "Nondeterminism"),
    "two activities swapped": ("calls.py", READS_LATER, "Nondeterminism"),
    "another response": ("outcomes.py", ANSWERS_OTHERWISE, "another result"),
    "nothing": ("calls.py", "", None),
}


def _replay_changed(folder: Path) -> Answers:
    for change, (module, code, _) in CHANGES.items():
        copy = folder / change / "workflows"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(child.ROOT / "workflows", copy, ignore=ignored)
        with (copy / module).open("a", encoding="utf-8") as file:
            file.write(code)
    copies = [folder / change for change in CHANGES]
    return child.run_module("tests.replay.changed", [*copies, RUN])


@pytest.fixture(scope="module")
def judged(once: Once, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What a replay says of each copy of the workflows."""
    return once("changed", lambda: _replay_changed(tmp_path_factory.mktemp("changed")))


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_workflow_fails(judged: Answers, change: str) -> None:
    """Workflow code that takes other steps than were recorded fails, and an equal copy passes."""
    _, _, complaint = CHANGES[change]
    assert (complaint is None) == judged[change]["ok"]
    assert (complaint or "") in (judged[change]["error"] or "")
