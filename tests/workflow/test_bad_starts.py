"""Whatever a run is started with, it ends in an answer, and no workflow task is ever retried."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from tests.workflow import raw
from tests.workflow.decisions import ISSUE, a_request, final, lookup
from tests.workflow.raw import ODD_PAYLOADS, as_json, payload
from tests.workflow.runs import Run, outcome
from tests.workflow.world import World
from triage.contracts.response import Status, TriageResponse

INVALID = (Status.FAILED, "invalid_input")


async def _refused(run: Run, request_id: str) -> TriageResponse:
    """See that the run ended as invalid input at once, without a single failed task."""
    response = await run.response()
    assert (*INVALID, request_id, f"run-{request_id}") == (
        *outcome(response),
        response.request_id,
        response.run_id,
    )
    assert (0, 0, ()) == (response.steps, response.retries, response.tool_sequence)
    assert [] == await run.task_failures()
    assert 1 == (await run.state()).version
    return response


@pytest.mark.parametrize("case", ODD_PAYLOADS)
async def test_any_single_payload_ends_as_invalid_input(world: World, case: str) -> None:
    """A payload of another shape, encoding or size than a request's fails the run cleanly."""
    await _refused(await raw.start(world, [ODD_PAYLOADS[case]]), "invalid")


@pytest.mark.parametrize("case", ODD_PAYLOADS)
async def test_any_options_payload_ends_as_invalid_input(world: World, case: str) -> None:
    """Options that are none fail the run cleanly; null and an empty object stand for defaults."""
    run = await raw.start(world, [as_json(a_request()), ODD_PAYLOADS[case]])
    if case in {"JSON null", "an empty object", "the SDK's null"}:
        assert Status.COMPLETED is (await run.response()).status
    else:
        await _refused(run, ISSUE)


@pytest.mark.parametrize("count", [0, 3, 7])
async def test_another_number_of_inputs_is_invalid_input(world: World, count: int) -> None:
    """No input, or more than a request and its options, fails the run cleanly."""
    response = await _refused(await raw.start(world, [as_json(a_request())] * count), "invalid")
    assert str(count) in response.reason


WRONG_REQUESTS: list[tuple[dict[str, JsonValue], str]] = [
    (a_request(labels=["bug"]), ISSUE),
    (a_request(title=True), ISSUE),
    (a_request(body=7), ISSUE),
    (a_request(body=""), ISSUE),
    (a_request(body=" \t\r\n\u2003"), ISSUE),
    (a_request(source=None), ISSUE),
    (a_request(title="x" * 4_097), ISSUE),
    (a_request(body="x" * 1_048_577), ISSUE),
    (a_request(changed_paths="a"), ISSUE),
    (a_request(changed_paths=[""]), ISSUE),
    (a_request(changed_paths=[1]), ISSUE),
    (a_request(changed_paths={"0": "a"}), ISSUE),
    (a_request(changed_paths=["a"] * 3_001), ISSUE),
    (a_request(request_id=""), ""),
    (a_request(request_id=" "), " "),
    (a_request(request_id=True), "True"),
    (a_request(request_id=7), "7"),
    (a_request(request_id=None), "None"),
    (a_request(request_id=["a", 1]), "['a', 1]"),
    (a_request(request_id="x" * 257), "x" * 256),
    ({"request_id": ISSUE}, ISSUE),
    ({"title": "no id"}, "invalid"),
]


@pytest.mark.parametrize(("value", "request_id"), WRONG_REQUESTS, ids=range(len(WRONG_REQUESTS)))
async def test_a_request_is_exactly_its_five_fields(
    world: World, value: dict[str, JsonValue], request_id: str
) -> None:
    """A field too many, missing, blank, too long or of another type is refused by name."""
    response = await _refused(await world.start_raw(value), request_id)
    assert response.reason.startswith("request.")
    assert len(response.reason) < 200


WRONG_OPTIONS: list[dict[str, JsonValue]] = [
    {"max_steps": True},
    {"max_steps": "3"},
    {"max_steps": 1.0},
    {"max_steps": -1},
    {"max_steps": 101},
    {"max_model_retries": False},
    {"mode": "yolo"},
    {"mode": None, "unknown": 1},
    {"model": "os.system"},
    {"model": 5},
    {"model": "Rules"},
    {"approval_window_seconds": 1e9},
    {"approval_window_seconds": 90 * 24 * 3_600 + 1},
    {"permitted_effects": "apply_labels"},
    {"approvals": {"op": True}},
    {"approvals": {"op": "3"}},
    {"approvals": [["op", 3]]},
    {"grounding": "vibes"},
    {"budget": {"tokens": -1}},
    {"budget": {"money": 1}},
    {"context": {"tenant": ""}},
    {"context": {"admin": True}},
    {"continued_from": "another-run"},
]


@pytest.mark.parametrize("options", WRONG_OPTIONS, ids=range(len(WRONG_OPTIONS)))
async def test_unknown_or_mistyped_options_are_refused(
    world: World, options: dict[str, JsonValue]
) -> None:
    """An unknown option, or a boolean for a number, ends the run before it begins."""
    response = await _refused(await world.start_raw(a_request(), options), ISSUE)
    assert response.reason.startswith("options.")


async def test_a_reason_quotes_nothing_of_the_input(world: World) -> None:
    """The answer names fields and kinds of errors; keys and values of strangers stay out of it."""
    odd = {**a_request(), "<script>alert(1)</script>": "password=hunter2"}
    reason = (await _refused(await world.start_raw(odd), ISSUE)).reason
    assert "script" not in reason
    assert "hunter2" not in reason


SURROGATES = [b'"\\ud800"', b'"a\\udfffb"', b'"\\ud83d"']


@pytest.mark.parametrize("text", SURROGATES, ids=range(len(SURROGATES)))
@pytest.mark.parametrize("field", ["title", "body", "source", "request_id"])
async def test_lone_surrogates_become_replacement_characters(
    world: World, text: bytes, field: str
) -> None:
    """A request with escaped lone surrogates, which no decoder takes, runs to its end."""
    fields = {**a_request(), field: "MARK"}
    if field != "request_id":
        fields["request_id"] = ISSUE
    data = json.dumps(fields).encode().replace(b'"MARK"', text)
    options: JsonValue = {"model": await world.store_script([lookup(), final("owners-api")])}
    run = await raw.start(world, [payload(data), as_json(options)])
    response = await run.response()
    assert (Status.COMPLETED, None) == outcome(response)
    assert ("\ufffd" in response.request_id) == (field == "request_id")
    assert [] == await run.task_failures()


async def test_nul_is_a_character_like_any_other(world: World) -> None:
    """NUL in every field, the request's id included, changes nothing about the run."""
    odd = a_request(request_id="a\x00b", title="\x00", body="\x00", source="\x00")
    response = await world.play(lookup(), final("owners-api"), request=odd)
    assert (Status.COMPLETED, "a\x00b") == (response.status, response.request_id)


async def test_a_body_of_a_mebibyte_is_triaged(world: World) -> None:
    """The largest body that a request may have runs, and its history holds it once."""
    run = await world.start(model="rules", request=a_request(body="[{," * 349_525))
    await run.response()
    size = sum(event.ByteSize() for event in await run.events())
    assert 1_048_575 < size < 1_060_000


async def test_input_made_of_nothing_but_brackets_is_refused_in_time(world: World) -> None:
    """Two mebibytes of empty lists, which take a second to read, are refused unread."""
    brackets = b'{"request_id": "a", "x": [' + b"[]," * 600_000 + b"0]}"
    response = await _refused(await raw.start(world, [payload(brackets)]), "invalid")
    assert "values" in response.reason


@pytest.mark.parametrize("inputs", [[], [as_json({})], [payload(b"\x00", b"binary/plain")] * 3])
async def test_an_unknown_workflow_type_fails_cleanly(world: World, inputs: list[Payload]) -> None:
    """A type that does not exist ends FAILED as invalid_input, whatever its input."""
    run = await raw.start(world, inputs, kind="IssueTriageV2")
    with pytest.raises(WorkflowFailureError) as caught:
        await run.response()
    assert isinstance(caught.value.cause, ApplicationError)
    assert "invalid_input" == caught.value.cause.type
    assert [] == await run.task_failures()
