"""Checks what an ended run leaves behind, by recorded histories."""

from __future__ import annotations

import base64
import itertools
import json
from datetime import UTC, datetime

import pytest

from tests.replay.catalogue import CARRIED
from tests.replay.people import EDITED
from tests.unit.story.histories import events_of, parsed, payload
from tests.workflow.decisions import a_request
from triage.cli.predecessors import Predecessor, standing_request
from triage.cli.resuming import ids_after
from triage.contracts.base import ContractError
from triage.contracts.options import ContinuedFrom
from triage.contracts.request import parse_request

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


@pytest.mark.parametrize(
    ("workflow_id", "follows", "expected"),
    [
        ("triage-7", None, ["triage-7.2", "triage-7.3"]),
        ("triage-7.2", "triage-7", ["triage-7.3", "triage-7.4"]),
        ("triage-7.12", "triage-7.3", ["triage-7.13", "triage-7.14"]),
        ("release-1.2", None, ["release-1.2.2", "release-1.2.3"]),
        ("release-1.2", "another", ["release-1.2.2", "release-1.2.3"]),
        ("triage-7.b", "triage-7", ["triage-7.b.2", "triage-7.b.3"]),
    ],
)
def test_ids_go_on_in_a_series(workflow_id: str, follows: str | None, expected: list[str]) -> None:
    """A continuation is numbered after its run, and only a continuation's number is counted on."""
    link = ContinuedFrom(workflow_id=workflow_id, run_id="run", version=6)
    request = parse_request(a_request())
    ended = Predecessor(link, "completed", request, {}, follows, datetime.now(UTC))
    assert expected == [*itertools.islice(ids_after(ended), 2)]
