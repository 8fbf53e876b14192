"""How a run begins: whatever arrives is a request with options, or a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.contrib.pydantic import pydantic_data_converter

from tests.unit.contracts.strategies import JSON_VALUES, PROPERTY, short
from triage.contracts.base import MAX_REQUEST_ID_CHARS, ContractError
from triage.contracts.options import Mode, RunOptions
from triage.contracts.request import parse_request
from workflows.start import (
    MAX_OPTIONS_BYTES,
    MAX_REQUEST_BYTES,
    RefusedStart,
    Start,
    read_json,
    read_start,
)

REQUEST: dict[str, JsonValue] = {
    "request_id": "ISSUE-101",
    "title": "Saving fails",
    "body": "The create endpoint answers 500.",
    "changed_paths": [],
    "source": "test",
}


def _raw(data: bytes, encoding: bytes | None = b"json/plain") -> RawValue:
    metadata = {} if encoding is None else {"encoding": encoding}
    return RawValue(Payload(metadata=metadata, data=data))


def _json(value: JsonValue) -> RawValue:
    return _raw(json.dumps(value).encode())


def _refusal(*args: Any) -> tuple[str, str]:  # noqa: ANN401 - whatever a client sends
    start = read_start(args)
    assert isinstance(start, RefusedStart)
    return start.request_id, start.reason


def test_a_request_alone_runs_with_default_options() -> None:
    """One argument is enough."""
    assert Start(parse_request(REQUEST), RunOptions()) == read_start([_json(REQUEST)])


def test_a_request_runs_with_its_options() -> None:
    """The second argument holds the options."""
    start = read_start([_json(REQUEST), _json({"mode": "approve", "max_steps": 2})])
    assert isinstance(start, Start)
    assert (Mode.APPROVE, 2) == (start.options.mode, start.options.max_steps)


@pytest.mark.parametrize("null", [_raw(b"null"), _raw(b"", b"binary/null"), _raw(b" null\n")])
def test_null_options_are_no_options(null: RawValue) -> None:
    """Null in the place of options, in JSON or in the SDK's own form, means the defaults."""
    assert Start(parse_request(REQUEST), RunOptions()) == read_start([_json(REQUEST), null])


@pytest.mark.parametrize("count", [0, 3, 4, 20])
def test_a_wrong_number_of_inputs_is_refused(count: int) -> None:
    """No input, or more than two, is refused under the id ``invalid``, and the count is said."""
    expected = f"expected a request and optional options, got {count} inputs"
    assert ("invalid", expected) == _refusal(*[_json(REQUEST)] * count)


@pytest.mark.parametrize(
    "encoding", [None, b"", b"binary/plain", b"json/protobuf", b"binary/encrypted", b"\xff"]
)
def test_other_encodings_are_refused(encoding: bytes | None) -> None:
    """Only a json/plain payload is read, however its bytes look."""
    data = json.dumps(REQUEST).encode()
    assert ("invalid", "request must be a json/plain payload") == _refusal(_raw(data, encoding))
    assert ("ISSUE-101", "options must be a json/plain payload") == _refusal(
        _json(REQUEST), _raw(b"{}", encoding)
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"not JSON",
        b"\x00",
        b"\xff\xfe",
        json.dumps(REQUEST).encode("utf-16"),
        b'"\xed\xa0\x80"',
        json.dumps(REQUEST).encode() * 2,
        b'{"request_id": "a", "request_id": "b"}',
        b'{"request_id": 1e999}',
        b'{"request_id": NaN}',
        b"[" * 100_000,
    ],
    ids=short,
)
def test_what_is_not_json_is_refused(data: bytes) -> None:
    """A request that is no strict JSON ends with a reason, under the id ``invalid``."""
    request_id, reason = _refusal(_raw(data))
    assert request_id == "invalid"
    assert reason.startswith("request")


@pytest.mark.parametrize("value", [None, True, 1, "ISSUE-101", [], [REQUEST]], ids=short)
def test_json_that_is_no_object_is_refused(value: JsonValue) -> None:
    """A JSON text, list, number or null is no request, with and without options."""
    expected = ("invalid", "request must be a JSON object")
    assert expected == _refusal(_json(value))
    assert expected == _refusal(_json(value), _json({}))


def test_the_sdks_null_is_no_request() -> None:
    """A client that passes None as request is told what a request is."""
    assert _refusal(_raw(b"", b"binary/null")) == ("invalid", "request must be a JSON object")


@pytest.mark.parametrize(
    ("change", "request_id"),
    [
        ({"title": " "}, "ISSUE-101"),
        ({"request_id": None}, "None"),
        ({"request_id": True}, "True"),
        ({"request_id": 7}, "7"),
        ({"request_id": ["a"]}, "['a']"),
        ({"request_id": ""}, ""),
        ({"request_id": "x" * 1_000}, "x" * MAX_REQUEST_ID_CHARS),
        ({"extra": 1}, "ISSUE-101"),
    ],
    ids=short,
)
def test_a_refused_request_answers_under_the_id_it_gave(
    change: dict[str, JsonValue], request_id: str
) -> None:
    """Invalid input keeps the given id as text, so that its caller can find it."""
    actual, reason = _refusal(_json({**REQUEST, **change}))
    assert request_id == actual
    assert reason.startswith("request.")


@pytest.mark.parametrize("value", [True, 1, "{}", [], {"unknown": 1}, {"max_steps": True}])
def test_wrong_options_are_refused_under_the_requests_id(value: JsonValue) -> None:
    """A run never starts with options that it would have to ignore."""
    request_id, reason = _refusal(_json(REQUEST), _json(value))
    assert request_id == "ISSUE-101"
    assert reason.startswith("options")


def test_lone_surrogates_reach_no_decoder() -> None:
    """A request with escaped lone surrogates runs, with U+FFFD in their place."""
    start = read_start([_json({**REQUEST, "request_id": "\udcff", "title": "a\ud800"})])
    assert isinstance(start, Start)
    assert ("\ufffd", "a\ufffd") == (start.request.request_id, start.request.title)
    request_id, reason = _refusal(_json({"request_id": "\ud800"}))
    assert ("\ufffd", True) == (request_id, reason.startswith("request.title: is missing; "))


def test_nul_survives() -> None:
    """NUL is a character like any other here; stores that cannot hold it must escape it."""
    start = read_start([_json({**REQUEST, "body": "a\x00b"})])
    assert isinstance(start, Start)
    assert start.request.body == "a\x00b"


@pytest.mark.parametrize(
    "value", [b"bytes", float("nan"), {1: "a", "b": 2}, object(), {"request_id": b"x"}], ids=type
)
def test_what_another_converter_decoded_is_held_to_json(value: object) -> None:
    """A value that is no JSON is refused, and never raises out of the run."""
    assert ("invalid", "request is not valid JSON") == _refusal(value)


def test_what_another_converter_decoded_may_be_a_request() -> None:
    """A plain JSON value in the place of a raw payload is read the same way."""
    assert Start(parse_request(REQUEST), RunOptions()) == read_start([REQUEST, None])


@pytest.mark.parametrize("options", [[], [None], [{"mode": "shadow"}]], ids=short)
def test_payloads_of_the_sdks_own_converter_are_read(options: list[JsonValue]) -> None:
    """A plain Python client can start a run with the SDK's pydantic converter."""
    payloads = pydantic_data_converter.payload_converter.to_payloads([REQUEST, *options])
    assert isinstance(read_start([RawValue(payload) for payload in payloads]), Start)


def test_reading_names_what_was_read() -> None:
    """A refusal says which argument was wrong."""
    with pytest.raises(ContractError, match=r"^edit is not valid JSON$"):
        read_json(_raw(b"{"), "edit")
    assert [1] == read_json(_raw(b"[1]"), "edit")


_encodings = st.sampled_from(
    (b"json/plain", b"json/plain", b"json/plain", b"binary/null", b"binary/plain", None)
)
_payloads = st.builds(
    _raw,
    st.one_of(
        st.binary(max_size=30),
        JSON_VALUES.map(lambda value: json.dumps(value).encode()),
        st.just(json.dumps(REQUEST).encode()),
    ),
    _encodings,
)


@PROPERTY
@given(st.lists(_payloads, max_size=4))
def test_anything_is_a_start_or_a_refusal(args: list[RawValue]) -> None:
    """No number, shape or encoding of arguments raises: a workflow task never fails on input."""
    start = read_start(args)
    if isinstance(start, RefusedStart):
        assert start.reason
        assert len(start.request_id) <= MAX_REQUEST_ID_CHARS
        start.request_id.encode("utf-8")
    else:
        assert isinstance(start, Start)


def _payload(value: JsonValue, padding: int) -> RawValue:
    data = json.dumps(value).encode() + b" " * padding
    return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=data))


@pytest.mark.parametrize("what", ["request", "options"])
def test_a_start_that_could_not_be_sent_again_is_refused(what: str) -> None:
    """A run that continues as new sends its start again, so it is bounded, and its id is known."""
    limits = {"request": MAX_REQUEST_BYTES, "options": MAX_OPTIONS_BYTES}
    values: dict[str, JsonValue] = {"request": REQUEST, "options": {}}
    for over in (0, 1):
        padding = {what: limits[what] - len(json.dumps(values[what])) + over}
        args = [_payload(values[name], padding.get(name, 0)) for name in values]
        start = read_start(args)
        assert bool(over) is isinstance(start, RefusedStart)
    assert isinstance(start, RefusedStart)
    assert ("ISSUE-101", f"{what} is larger than {limits[what]:,} bytes") == (
        start.request_id,
        start.reason,
    )
