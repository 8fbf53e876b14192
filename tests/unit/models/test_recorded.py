"""Promises of the recorded model: it plays its script and remembers nothing."""

import asyncio

import pytest
from pydantic import JsonValue

from tests.unit.models.driver import issue, model_request
from triage.contracts.canonical import digest_of
from triage.contracts.payloads import DecideOutcome, DecideResult
from triage.models.recorded import RecordedModel

TIMEOUT: JsonValue = {"error": "model_timeout"}


def _ask(script: list[JsonValue], step: int) -> DecideResult:
    request = model_request(issue("title", "body"), step=step)
    return asyncio.run(RecordedModel(script).decide(request))


@pytest.mark.parametrize(
    "item",
    [
        {"kind": "final"},
        "not a decision",
        None,
        [],
        {"error": "model_timeout", "more": 1},
        {"error": "other"},
    ],
    ids=str,
)
def test_an_item_is_returned_untouched(item: JsonValue) -> None:
    """Whatever stands in the script is the answer, since judging it is the loop's work."""
    expected = DecideResult(outcome=DecideOutcome.DECISION, decision=item)
    assert expected == _ask([TIMEOUT, item], step=2)


def test_a_marked_item_is_a_timeout() -> None:
    """Exactly the source document's mark stands for a timeout."""
    assert DecideResult(outcome=DecideOutcome.TIMEOUT) == _ask([TIMEOUT], step=1)


@pytest.mark.parametrize("step", [0, 2, 100])
def test_outside_the_script_there_is_no_decision(step: int) -> None:
    """A script past its end is an invalid output, never a repeated or a wrapped-around one."""
    expected = DecideResult(outcome=DecideOutcome.INVALID, detail="recorded decisions exhausted")
    assert expected == _ask([TIMEOUT], step)


def test_the_same_step_asked_twice_gets_the_same_answer() -> None:
    """A retried activity does not move the script on."""
    model = RecordedModel(["one", "two"])
    request = model_request(issue("title", "body"), step=1)
    assert asyncio.run(model.decide(request)) == asyncio.run(model.decide(request))


def test_the_revision_is_the_digest_of_the_script() -> None:
    """The revision names the script by the digest under which it is stored."""
    script: list[JsonValue] = [{"kind": "final"}, TIMEOUT]
    model = RecordedModel(script)
    assert ("recorded", digest_of(script)) == (model.name, model.revision)
