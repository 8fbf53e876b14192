"""Checks what an ended run leaves behind, by recorded histories."""

from __future__ import annotations

import base64
import json

import pytest

from tests.replay.catalogue import CARRIED
from tests.replay.people import EDITED
from tests.unit.story.histories import events_of, parsed, payload
from tests.workflow.decisions import a_request
from triage.cli.predecessors import standing_request
from triage.contracts.base import ContractError

START = "workflowExecutionStartedEventAttributes"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("completed", a_request()),
        ("completed-edited-at-start", EDITED),
        ("completed-edited-while-waiting", EDITED),
        ("completed-despite-junk", a_request()),
        (CARRIED, a_request()),
    ],
)
def test_the_latest_valid_edit_counts(name: str, expected: object) -> None:
    """A run is continued with the request as it stood in the end, whatever junk was sent to it."""
    request = standing_request(parsed(events_of(name)))
    assert expected == request.model_dump(mode="json")


def test_an_edit_that_was_handed_on_counts() -> None:
    """A run that continued as new before it took an edit up is continued with that edit."""
    events = events_of(CARRIED)
    arguments = events[0][START]["input"]["payloads"]
    carried = json.loads(base64.b64decode(arguments[2]["data"]))
    arguments[2] = payload({**carried, "edit": EDITED})
    assert EDITED == standing_request(parsed(events)).model_dump(mode="json")


@pytest.mark.parametrize("name", ["failed-no-input", "failed-broken-json", "failed-not-an-object"])
def test_where_there_is_no_request_there_is_nothing_to_continue(name: str) -> None:
    """A run that began with no request, or with one that nobody can read, says so."""
    with pytest.raises(ContractError):
        standing_request(parsed(events_of(name)))
