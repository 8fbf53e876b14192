"""Checks that every recorded history has a story, whole, cut or encrypted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.replay.histories import payloads, read_events
from tests.unit.story.histories import (
    FILES,
    INDEX,
    changed,
    of_kind,
    parsed,
    payload,
    stem,
    text_of,
)
from triage.contracts.failures import FailureClass
from triage.replay import read_history
from triage.story.parts import Kind
from triage.story.remedies import remedy
from triage.story.telling import tell


def _requests(path: Path) -> Iterator[dict[str, Any]]:
    """Return the requests in a history: the first one and its edits."""
    for event in read_events(path):
        for data in payloads(event):
            try:
                value = json.loads(data)
            except ValueError:
                continue
            if isinstance(value, dict) and "body" in value:
                yield value


@pytest.mark.parametrize("path", FILES, ids=stem)
def test_each_history_is_told(path: Path) -> None:
    """Every recorded run has a story that says how it ended, with which failure, and what then."""
    story, entry = tell(read_history(path).events), INDEX[path.stem]
    response = entry["response"] or {}
    if "status" in response:
        assert response["status"] == story.status
        assert response["status"] in of_kind(story, Kind.ENDED)[0].text
    else:
        ends = {"open": "running", **{name: name for name in ("canceled", "continued_as_new")}}
        assert ends.get(entry["ends"], "failed") == story.status
    assert (entry["ends"] == "open") == bool(of_kind(story, Kind.STANDING))
    if response.get("failure"):
        info = remedy(FailureClass(response["failure"]), response.get("reason") or "")
        [failure] = of_kind(story, Kind.FAILURE)
        for part in (response["failure"], info.group, info.owner, info.next_step):
            assert part in failure.text
    assert sorted(beat.event_id for beat in story.beats) == [b.event_id for b in story.beats]


@pytest.mark.parametrize("path", FILES, ids=stem)
def test_no_history_gives_the_issue_away(path: Path) -> None:
    """Neither title nor body of a request, edited ones too, is in any story, for whomever."""
    told = json.dumps(tell(read_history(path).events).to_json())
    for request in _requests(path):
        assert request["title"] not in told
        assert request["body"] not in told


@pytest.mark.parametrize("path", FILES, ids=stem)
def test_encrypted_histories_are_told_as_far_as_they_can_be(path: Path) -> None:
    """Where a key is needed, the story says so, and tells the ending by its search attributes."""

    def encrypt(given: dict[str, Any]) -> dict[str, Any]:
        return given if "type" in given["metadata"] else payload("secret", "binary/encrypted")

    story = tell(parsed(changed(read_events(path), encrypt)))
    response = INDEX[path.stem]["response"] or {}
    if response.get("failure") or "route" in response:
        assert response["status"] == story.status
    if any(payloads(read_events(path)[0])):
        assert "not readable here" in story.beats[0].text
    assert "secret" not in text_of(story)


@pytest.mark.parametrize("path", FILES, ids=stem)
def test_a_story_can_stop_anywhere(path: Path) -> None:
    """Every beginning of a history has a story, and one that has not ended says where it stands."""
    events = list(read_history(path).events)
    for length in range(1, len(events)):
        story = tell(events[:length])
        assert ("running", Kind.STANDING) == (story.status, story.beats[-1].kind)
