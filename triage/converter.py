"""How values become Temporal payloads and back, on clients, workers and in replays alike.

Why it exists: three habits of the SDK are not safe enough for input that strangers write, so one
converter holds the rules that replace them.

* A payload without a declared type is handed over untouched, as `RawValue`: nothing is decoded
  before our own code looks at it, so no arity, encoding or lone surrogate can reach a decoder and
  turn a workflow task into one that fails for ever.
* A payload with a declared type either satisfies it or raises `PayloadValidationError`, which
  fails the execution cleanly and names fields and error kinds, never the input's text.
* Fields that were never set are not written, and what is `Deflated` is, so histories stay small.

Details of failures are the exception to the first rule: people read them, so they are decoded
where they can be and left raw where they cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Self, TypeVar, cast

import google.protobuf.message
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.common import RawValue
from temporalio.contrib.pydantic import PydanticPayloadConverter, ToJsonOptions
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverter,
    PayloadCodec,
    PayloadConverter,
    SerializationContext,
    create_payload_validation_error,
)
from temporalio.exceptions import ApplicationError, FailureError

from triage.contracts.base import ContractError
from triage.contracts.deflated import ENCODING, Deflated, deflate, inflate
from triage.contracts.payloads import RunContext
from triage.contracts.shared import shared

T = TypeVar("T")

MAX_REPORTED_PROBLEMS = 20
_JSON = b"json/plain"
_PROTOBUF = (b"json/protobuf", b"binary/protobuf")


_PARTS: Final = PydanticPayloadConverter(ToJsonOptions(exclude_unset=True)).converters
"""One for each encoding. They keep nothing between values but how a type is decoded."""


class TriagePayloadConverter(CompositePayloadConverter):
    """Pydantic JSON with the rules of this module."""

    def __init__(self) -> None:
        # The SDK makes a converter for every activation of a run; building its parts anew, and
        # each type's decoder with them, took longer than all that they are asked to convert.
        self.converters = _PARTS

    def with_context(self, context: SerializationContext) -> Self:  # noqa: ARG002 - the SDK's own
        """Return this one: no part of it looks at where a value comes from."""
        return self

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """Encode values; None becomes a JSON null, which command lines can show."""
        return [self._encode(value) for value in values]

    def _encode(self, value: Any) -> Payload:  # noqa: ANN401 - whatever is sent
        if value is None:
            return Payload(metadata={"encoding": _JSON}, data=b"null")
        [payload] = super().to_payloads([value])
        if isinstance(value, Deflated):
            return Payload(metadata={"encoding": ENCODING}, data=deflate(payload.data))
        return payload

    def from_payloads(
        self, payloads: Sequence[Payload], type_hints: list[type] | None = None
    ) -> list[Any]:
        """Decode what has a declared type and wrap the rest.

        Raises:
            ApplicationError: of type ``PayloadValidationError``, for a payload that does not
                satisfy its declared type.
        """
        hints = list(type_hints or ())
        hints += [RawValue] * (len(payloads) - len(hints))
        return [self._decode(*pair) for pair in zip(payloads, hints, strict=False)]

    def _decode(self, payload: Payload, hint: Any) -> Any:  # noqa: ANN401 - a hint may be any form
        if hint is RawValue or hint is None:
            return RawValue(payload)
        encoding = payload.metadata.get("encoding", b"")
        if encoding in _PROTOBUF and not _is_message(hint):
            raise _invalid([{"type": "encoding", "loc": ""}])
        try:
            if encoding == ENCODING:
                payload, encoding = plain(payload), _JSON
            [value] = super().from_payloads([payload], [hint])
            if isinstance(value, RunContext):
                return shared(value)
            return value if encoding in (_JSON, *_PROTOBUF) else _conforming(value, hint)
        except ValidationError as error:
            raise _invalid(_problems(error, hint)) from None
        except (ContractError, KeyError, RuntimeError, google.protobuf.message.Error):
            raise _invalid([{"type": "encoding", "loc": ""}]) from None


class TriageFailureConverter(DefaultFailureConverter):
    """The SDK's failure converter, with details (and encoded attributes) decoded where possible."""

    def from_failure(self, failure: Failure, payload_converter: PayloadConverter) -> BaseException:
        """See base class."""
        if not isinstance(payload_converter, _ReadablePayloads):
            payload_converter = _ReadablePayloads(payload_converter)
        return super().from_failure(failure, payload_converter)


class EncodedFailureConverter(TriageFailureConverter):
    """The same, with messages and stack traces moved to where a codec encrypts them."""

    def __init__(self) -> None:
        super().__init__(encode_common_attributes=True)


class _ReadablePayloads(PayloadConverter):
    """Decodes payloads that nobody declared a type for, as far as they can be decoded."""

    def __init__(self, inner: PayloadConverter) -> None:
        self._inner = inner

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        return self._inner.to_payloads(values)

    def from_payloads(
        self, payloads: Sequence[Payload], type_hints: list[type] | None = None
    ) -> list[Any]:
        if type_hints:
            return self._inner.from_payloads(payloads, type_hints)
        return [self._readable(payload) for payload in payloads]

    def _readable(self, payload: Payload) -> Any:  # noqa: ANN401 - whatever JSON holds
        try:
            [value] = self._inner.from_payloads([payload], [cast("type", Any)])
        except FailureError:
            return RawValue(payload)
        else:
            return value


class _OneForAll(DataConverter):
    """A converter that is the same wherever a value comes from; without a codec nothing asks."""

    def with_context(self, context: SerializationContext) -> Self:  # noqa: ARG002 - the SDK's own
        """Return this one; the SDK asks for each activation and activity, several times."""
        return self


def build_converter(codec: PayloadCodec | None = None) -> DataConverter:
    """Return the converter that every client, worker and replay must use.

    Args:
        codec: encrypts payloads; with one, failure messages are encrypted as well.
    """
    kind = DataConverter if codec else _OneForAll
    return kind(
        payload_converter_class=TriagePayloadConverter,
        payload_codec=codec,
        failure_converter_class=EncodedFailureConverter if codec else TriageFailureConverter,
    )


data_converter = build_converter()
"""The production converter, without a codec."""


def decode_raw(value: RawValue, hint: type[T]) -> T:
    """Decode what arrived without a declared type, such as a memo or heartbeat details.

    Raises:
        ApplicationError: of type ``PayloadValidationError``, when `value` does not satisfy `hint`.
    """
    return data_converter.payload_converter.from_payload(value.payload, hint)


def plain(payload: Payload) -> Payload:
    """Return a payload as it was before it was deflated; any other one as it is.

    Raises:
        ContractError: it is not what it says.
    """
    if payload.metadata.get("encoding") != ENCODING:
        return payload
    return Payload(metadata={"encoding": _JSON}, data=inflate(payload.data))


def _is_message(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, google.protobuf.message.Message)


def _conforming(value: object, hint: Any) -> Any:  # noqa: ANN401 - a hint may be any form
    """Hold null and bytes to the declared type too: the SDK passes them unchecked."""
    return TypeAdapter(hint).validate_python(value, strict=True)


def _invalid(problems: list[dict[str, str]]) -> ApplicationError:
    return create_payload_validation_error(problems)


def _problems(error: ValidationError, hint: object) -> list[dict[str, str]]:
    """Say where and how, in pydantic's codes; keys that we did not declare are input: ``*``."""
    declared = frozenset(_declared_names(hint))
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [
        {"type": problem["type"], "loc": ".".join(_shown(problem["loc"], declared))}
        for problem in found[:MAX_REPORTED_PROBLEMS]
    ]


def _shown(path: tuple[int | str, ...], declared: frozenset[str]) -> Iterator[str]:
    return (str(part) if isinstance(part, int) or part in declared else "*" for part in path)


def _declared_names(hint: Any) -> Iterator[str]:  # noqa: ANN401 - a hint may be any form
    try:
        pending: list[object] = [TypeAdapter(hint).json_schema()]
    except PydanticUserError:
        return
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield from node.get("properties", ())
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
