"""What is recorded covers every way a run can end, and holds nothing that it must not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.replay.catalogue import CARRIED, LAST, RECORDINGS
from tests.replay.histories import (
    FOLDER,
    history_files,
    index_entry,
    payloads,
    read_events,
    read_index,
)
from tests.replay.stage import SECRET
from tests.replay.traces import traces
from triage.contracts.failures import FailureClass
from triage.contracts.incident import LoopStatus
from triage.contracts.names import EVIDENCE_LOOP, ISSUE_TRIAGE
from triage.contracts.options import Mode
from triage.replay import read_history

TERMINAL = {"completed", "review_required", "failed"}
FILES = history_files()
EACH = pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])


def _ends(workflow: str) -> set[str]:
    return {e["ends"] for e in read_index().values() if e["workflow"] == workflow}


def test_every_ending_is_recorded() -> None:
    """Each terminal status, and each failure class, is the end of a recorded run."""
    ends = [end.split("/") for end in _ends(ISSUE_TRIAGE)]
    assert set() == TERMINAL - {end[0] for end in ends}
    assert set() == {failure.value for failure in FailureClass} - {end[-1] for end in ends}


def test_a_review_is_recorded_with_and_without_a_failure() -> None:
    """A run that a model hands over and one that broke end differently, so both are recorded."""
    reviews = {end for end in _ends(ISSUE_TRIAGE) if end.startswith("review_required")}
    assert "review_required" in reviews
    assert len(reviews) > 1


def test_an_unfinished_run_is_recorded() -> None:
    """Replay matters most to runs that still go on."""
    assert "open" in _ends(ISSUE_TRIAGE)


def test_both_sides_of_a_fresh_history_are_recorded() -> None:
    """An execution that continued as new is recorded, and the one that carries it on to its end."""
    before, after = [
        read_events(FOLDER / f"{name}.json")[0]["workflowExecutionStartedEventAttributes"]
        for name in ("continued-as-new", CARRIED)
    ]
    assert before["originalExecutionRunId"] == after["continuedExecutionRunId"]
    assert {"continued_as_new", "completed"} <= _ends(ISSUE_TRIAGE)


def test_every_end_of_the_evidence_loop_is_recorded() -> None:
    """Each status of an investigation is the end of a recorded run."""
    assert set() == {status.value for status in LoopStatus} - _ends(EVIDENCE_LOOP)


def test_every_mode_is_recorded() -> None:
    """Each of the modes is that of a recorded run."""
    modes = {dict(recording.options).get("mode", "suggest") for recording in RECORDINGS}
    assert set() == {mode.value for mode in Mode} - modes


def test_the_catalogue_the_index_and_the_folder_agree() -> None:
    """What is recorded is what the catalogue asks for, and ends as it says."""
    expected = {recording.name: recording.ends for recording in (*RECORDINGS, *LAST)}
    assert expected == {name: entry["ends"] for name, entry in read_index().items()}
    assert set(expected) == {file.stem for file in FILES}


@EACH
def test_the_index_tells_the_recorded_response(file: Path) -> None:
    """Whoever reads the index sees what the run answered."""
    assert index_entry(read_history(file)) == read_index()[file.stem]


@EACH
def test_a_history_does_not_tell_where_it_was_recorded(file: Path) -> None:
    """No host, process, path or build of the recording machine is in a file."""
    assert [] == list(traces(json.loads(file.read_text(encoding="utf-8"))))


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """Title and body of every request among the inputs of an event."""
    for data in payloads(value):
        try:
            found = json.loads(data)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield from (found[name] for name in ("title", "body") if name in found)


@EACH
def test_issue_text_stands_once(file: Path) -> None:
    """Content goes by reference: only the start and the edit of a run hold the issue's text.

    An execution that continues as new hands the request on to the start of the next one.
    """
    handed_on = "workflowExecutionContinuedAsNewEventAttributes"
    events = [event for event in read_events(file) if handed_on not in event]
    brought = (
        "workflowExecutionStartedEventAttributes",
        "workflowExecutionSignaledEventAttributes",
    )
    given = {text for e in events for name in brought for text in _texts(e.get(name))}
    everything = b"\n".join(data for event in events for data in payloads(event))
    assert {} == {t: n for t in given if (n := everything.count(json.dumps(t).encode())) > 1}


@EACH
def test_no_secret_of_a_tool_is_recorded(file: Path) -> None:
    """What a tool returns is redacted, and what it raises is not kept."""
    events = read_events(file)
    kept = [file.read_bytes(), *(data for event in events for data in payloads(event))]
    assert [] == [data for data in kept if SECRET.encode() in data]
