"""The converter's rules on bare payloads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.common import RawValue
from temporalio.converter import PayloadCodec
from temporalio.exceptions import ApplicationError

from triage.contracts.deflated import MAX_INFLATED_BYTES, deflate
from triage.contracts.payloads import RunContext
from triage.converter import build_converter, data_converter, plain


class Note(BaseModel):
    """A strict record with an optional field."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    text: str
    more: str | None = None


class Left(BaseModel):
    """One arm of a union."""

    kind: Literal["left"]


class Right(BaseModel):
    """The other arm."""

    kind: Literal["right"]
    size: int


Either = Annotated[Left | Right, Field(discriminator="kind")]


def _payload(encoding: str, data: bytes) -> Payload:
    return Payload(metadata={"encoding": encoding.encode()}, data=data)


def _decode(payload: Payload, hint: Any) -> Any:  # noqa: ANN401 - the converter's own contract
    return data_converter.payload_converter.from_payloads([payload], [hint])[0]


ODD_PAYLOADS = {
    "object": _payload("json/plain", b'{"a": 1}'),
    "string": _payload("json/plain", b'"text"'),
    "lone surrogate": _payload("json/plain", b'"\\ud800"'),
    "not JSON": _payload("json/plain", b"{"),
    "not UTF-8": _payload("json/plain", b'"\xff"'),
    "bytes": _payload("binary/plain", b"\x00\xff"),
    "null": _payload("binary/null", b""),
    "unknown encoding": _payload("application/x-odd", b"?"),
    "no encoding": Payload(data=b"?"),
    "protobuf": _payload("json/protobuf", b"{}"),
}


@pytest.mark.parametrize("name", ODD_PAYLOADS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_undeclared_payloads_are_never_decoded(name: str, count: int) -> None:
    """Without a declared type every payload comes back untouched, whatever it holds."""
    payload = ODD_PAYLOADS[name]
    values = data_converter.payload_converter.from_payloads([payload] * count)
    assert _decode(payload, None) == values[0]
    assert [payload] * count == [value.payload for value in values]
    assert payload == data_converter.payload_converter.to_payload(values[0])


@pytest.mark.parametrize("name", sorted(set(ODD_PAYLOADS) - {"lone surrogate"}))
def test_declared_type_is_kept_or_refused(name: str) -> None:
    """A payload that is no note is refused with a typed error, null and bytes included."""
    with pytest.raises(ApplicationError) as caught:
        _decode(ODD_PAYLOADS[name], Note)
    assert caught.value.type == "PayloadValidationError"
    assert caught.value.non_retryable


def test_errors_quote_no_input() -> None:
    """Refusals name declared fields and error kinds; keys and values of the input never appear."""
    data = json.dumps({"text": 5, "sk-secret-key": "sk-secret-value"}).encode()
    with pytest.raises(ApplicationError) as caught:
        _decode(_payload("json/plain", data), Note)
    problems = [{"type": "string_type", "loc": "text"}, {"type": "extra_forbidden", "loc": "*"}]
    assert (problems,) == caught.value.details
    with pytest.raises(ApplicationError) as tagged:
        _decode(_payload("json/plain", b'{"kind": "sk-secret"}'), Either)
    assert "sk-secret" not in str(tagged.value.details)


def test_unset_fields_are_not_written() -> None:
    """A field that was never set takes no place in a payload; one that was set to null does."""
    encoded = data_converter.payload_converter.to_payloads(
        [Note(text="a"), Note(text="a", more=None)]
    )
    assert [p.data for p in encoded] == [b'{"text":"a"}', b'{"text":"a","more":null}']


def test_lone_surrogate_fails_a_declared_text() -> None:
    """Text that is no valid Unicode is refused where a string was declared."""
    with pytest.raises(ApplicationError) as caught:
        _decode(ODD_PAYLOADS["lone surrogate"], str)
    assert caught.value.details == ([{"type": "json_invalid", "loc": ""}],)


def test_reported_problems_are_bounded() -> None:
    """A thousand wrong fields give a short refusal."""
    data = json.dumps({f"key{n}": n for n in range(1000)}).encode()
    with pytest.raises(ApplicationError) as caught:
        _decode(_payload("json/plain", data), Note)
    assert len(caught.value.details[0]) == 20


@pytest.mark.parametrize(
    ("payload", "hint", "expected"),
    [
        (ODD_PAYLOADS["bytes"], bytes, b"\x00\xff"),
        (ODD_PAYLOADS["null"], type(None), None),
        (ODD_PAYLOADS["null"], str | None, None),
        (ODD_PAYLOADS["object"], dict[str, int], {"a": 1}),
        (_payload("json/plain", b'{"kind":"right","size":2}'), Either, Right(kind="right", size=2)),
    ],
)
def test_declared_types_decode(payload: Payload, hint: Any, expected: object) -> None:  # noqa: ANN401 - hints of every form
    """A payload that satisfies its declared type is decoded to it."""
    assert expected == _decode(payload, hint)


class _Reversing(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [_payload("x/reversed", p.SerializeToString()[::-1]) for p in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload.FromString(p.data[::-1]) for p in payloads]


async def test_codec_covers_failure_messages() -> None:
    """With a codec the message of a failure is hidden in transit and readable after decoding."""
    converter = build_converter(_Reversing())
    failure = Failure()
    await converter.encode_failure(ApplicationError("secret words", {"a": 1}), failure)
    assert failure.message == "Encoded failure"
    decoded = await converter.decode_failure(failure)
    assert isinstance(decoded, ApplicationError)
    assert (decoded.message, decoded.details) == ("secret words", ({"a": 1},))


async def test_undecodable_failure_details_stay_raw() -> None:
    """A detail that cannot be decoded is handed over raw and hides nothing else."""
    odd = RawValue(ODD_PAYLOADS["lone surrogate"])
    failure = Failure()
    await data_converter.encode_failure(ApplicationError("m", odd, "plain"), failure)
    decoded = await data_converter.decode_failure(failure)
    assert isinstance(decoded, ApplicationError)
    raw, plain = decoded.details
    assert (odd.payload, "plain") == (raw.payload, plain)


def test_what_a_run_pins_is_deflated() -> None:
    """The largest payload of a run comes back as it was, out of fewer bytes than it has as JSON."""
    context = RunContext(model="rules", refused="a reason " * 40)
    payload = data_converter.payload_converter.to_payload(context)
    assert (b"json/zlib", True) == (payload.metadata["encoding"], len(payload.data) < 100)
    assert context == _decode(payload, RunContext)
    assert json.loads(plain(payload).data) == context.model_dump(exclude_unset=True)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{}", id="not deflated"),
        pytest.param(b"", id="empty"),
        pytest.param(deflate(b'{"text":"a"}')[:-3], id="cut"),
        pytest.param(deflate(b'{"text":"a"}') + b"more", id="longer"),
        pytest.param(deflate(b'{"text":"a"}'.ljust(MAX_INFLATED_BYTES + 1)), id="a bomb"),
        pytest.param(deflate(b'{"text":1}'), id="another type"),
    ],
)
def test_a_deflated_payload_is_kept_or_refused(data: bytes) -> None:
    """One that is damaged, of another type or far larger than it seems is refused, unread."""
    with pytest.raises(ApplicationError) as caught:
        _decode(_payload("json/zlib", data), Note)
    assert "PayloadValidationError" == caught.value.type
    assert Note(text="a") == _decode(_payload("json/zlib", deflate(b'{"text":"a"}')), Note)
