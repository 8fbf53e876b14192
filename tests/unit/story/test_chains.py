"""Checks stories of runs that continued as new, and of what they hand on."""

import base64
import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.replay.histories import FOLDER, payloads
from tests.unit.story.histories import (
    Events,
    events_of,
    of_kind,
    parsed,
    payload,
    run_id_of,
    told,
)
from triage.story.parts import Kind, Story
from triage.story.telling import tell, tell_chain

FIRST: Final = "continued-as-new"
LAST: Final = "completed-after-continuing-as-new"
START: Final = "workflowExecutionStartedEventAttributes"


def _whole() -> Story:
    return tell_chain([parsed(events_of(name)) for name in (FIRST, LAST)])


def test_a_chain_is_told_as_one_history() -> None:
    """One start, one wait and one end, with the join in between, and each run id at its beats."""
    story = _whole()
    counted = [len(of_kind(story, kind)) for kind in (Kind.STARTED, Kind.PINNED, Kind.WAITING)]
    assert [1, 1, 1] == counted
    [carried], [waited] = of_kind(story, Kind.CARRIED), of_kind(story, Kind.WAITED)
    run_ids = [run_id_of(FOLDER / f"{name}.json") for name in (FIRST, LAST)]
    assert run_ids == [*story.earlier, story.run_id]
    assert run_ids == [carried.facts["run_id"], carried.facts["new_run_id"]]
    assert run_ids == list(dict.fromkeys(beat.facts["run_id"] for beat in story.beats))
    assert "completed" == story.status
    assert "approved by maintainer" in waited.text
    [asked] = of_kind(story, Kind.WAITING)
    waiting_seconds = (waited.at - asked.at).total_seconds()
    assert waiting_seconds == pytest.approx(waited.facts["waited_seconds"], abs=0.2)


def test_an_execution_alone_goes_on_from_what_it_was_handed() -> None:
    """After the join it is told word for word as in the whole story."""
    whole, alone = _whole(), told(LAST)
    [carried] = of_kind(whole, Kind.CARRIED)
    joined = [beat.text for beat in whole.beats[whole.beats.index(carried) + 1 :]]
    started, waiting, *after = [beat.text for beat in alone.beats]
    assert joined == after
    before = f"carrying on from the run {run_id_of(FOLDER / f'{FIRST}.json')}, at version 6"
    assert f"{before} after 2 steps, with the evidence owners-api" in started
    assert of_kind(whole, Kind.WAITING)[0].text == waiting


def test_an_execution_that_was_carried_on_says_so() -> None:
    """Told alone, the earlier one ends with where the run goes on, and that the wait does, too."""
    story = told(FIRST)
    assert "continued_as_new" == story.status
    assert "the wait goes on in the next execution" in of_kind(story, Kind.WAITED)[0].text
    assert of_kind(story, Kind.ENDED)[0].facts["new_run_id"] == told(LAST).run_id


def test_a_chain_that_lacks_its_beginning_says_why() -> None:
    """What is not told is named, with the reason, and the rest is told from what was handed on."""
    story = tell_chain([parsed(events_of(LAST))], missing="it is gone")
    before = run_id_of(FOLDER / f"{FIRST}.json")
    assert f"carrying on from the run {before} (it is gone)" in story.beats[0].text
    assert "approved by maintainer" in of_kind(story, Kind.WAITED)[0].text


@pytest.mark.parametrize("initiator", ["CRON_SCHEDULE", "RETRY"])
def test_nothing_is_learned_from_what_nobody_handed_on(initiator: str) -> None:
    """A start by a schedule or a retry brings nothing that could be believed."""
    events = events_of(LAST)[:2]
    events[0][START]["initiator"] = f"CONTINUE_AS_NEW_INITIATOR_{initiator}"
    story = tell(parsed(events))
    assert [] == of_kind(story, Kind.WAITING)
    assert "owners-api" not in story.beats[0].text


def _handed(change: Callable[[dict[str, Any]], None]) -> Events:
    """Return the beginning of the last execution, with what it was handed changed."""
    events = events_of(LAST)[:2]
    [*others, carried] = events[0][START]["input"]["payloads"]
    value = json.loads(base64.b64decode(carried["data"]))
    change(value)
    events[0][START]["input"]["payloads"] = [*others, payload(value)]
    return events


def test_approvals_are_handed_on() -> None:
    """Who has approved so far is known, where one person is not enough."""

    def two(carried: dict[str, Any]) -> None:
        carried["wait"]["view"] |= {"approvals_required": 2, "approved_by": ["ann"]}

    standing = tell(parsed(_handed(two))).beats[-1].text
    assert "to decide on op-105 at version 6; 1 of 2 approvals are given (ann)" in standing


def test_an_edit_is_handed_on() -> None:
    """An edit that was not taken up yet is the request that is handed on, and not repeated."""
    [given] = [json.loads(data) for data in payloads(events_of(LAST)[0]) if b'"body"' in data][:1]
    body = given["body"]

    def edited(carried: dict[str, Any]) -> None:
        carried["edited"] = ["body"]
        carried["wait"] = None

    stopped = {
        "eventId": "3",
        "eventTime": events_of(LAST)[0]["eventTime"],
        "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED",
        "workflowExecutionTerminatedEventAttributes": {"reason": body},
    }
    text = tell(parsed([*_handed(edited), stopped])).beats[-1].text
    assert "(withheld: it repeats the issue's text)" in text


def test_what_cannot_be_read_is_not_handed_on() -> None:
    """A handed-on state of another version or of nobody's making ends no story."""

    def broken(carried: dict[str, Any]) -> None:
        carried["state"] |= {"evidence": 7, "verdicts": [{"at": 1}], "sent": [], "edits": "x"}
        carried["wait"] = {"view": {"version": "six"}, "began": "yesterday"}
        carried |= {"unproven": [None], "waited_seconds": "long"}

    assert "running" == tell(parsed(_handed(broken))).status
