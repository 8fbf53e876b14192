"""Reads the payloads of a history as far as they can be read here.

Why it exists: a history may hold what only its worker can read (an encrypted payload), what nobody
can (junk that somebody sent) and what another version of this program wrote. None of it may end a
story; it is told as not readable, or as lacking.
"""

from __future__ import annotations

from collections.abc import Container
from enum import Enum
from typing import Final, Literal

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.failure.v1 import Failure

from triage.contracts.base import ContractError
from triage.contracts.canonical import parse_json
from triage.contracts.deflated import ENCODING as DEFLATED
from triage.contracts.deflated import inflate

_OWN_ENCODINGS: Final = frozenset(
    {
        b"",
        b"json/plain",
        DEFLATED,
        b"json/protobuf",
        b"binary/null",
        b"binary/plain",
        b"binary/protobuf",
    }
)


class Unreadable(Enum):
    """Stands where a value cannot be read."""

    HERE = "not readable here"


UNREADABLE: Final = Unreadable.HERE
Read = JsonValue | Literal[Unreadable.HERE]


def read(payload: Payload) -> Read:
    """Return the JSON value of a payload, or `UNREADABLE`."""
    encoding = payload.metadata.get("encoding", b"")
    if encoding == b"binary/null":
        return None
    if encoding not in {b"json/plain", DEFLATED}:
        return UNREADABLE
    try:
        data = inflate(payload.data) if encoding == DEFLATED else payload.data
        return parse_json(data, "payload")
    except ContractError:
        return UNREADABLE


def first(payloads: Payloads) -> Read:
    """Return the value of the first payload; null if there is none."""
    return read(payloads.payloads[0]) if payloads.payloads else None


def is_encoded(payloads: Payloads) -> bool:
    """Whether a payload was encoded by something that this program does not have, such as a key.

    Its worker may well read it, so nothing can be said about it here. Whatever else cannot be read
    here could not be read there.
    """
    return any(
        payload.metadata.get("encoding", b"") not in _OWN_ENCODINGS for payload in payloads.payloads
    )


class Fields:
    """The fields of a JSON object that may lack any of them, or be no object at all.

    Attributes:
        readable: whether it is an object that can be read here.
    """

    def __init__(self, value: object = None) -> None:
        self.readable = isinstance(value, dict)
        self._values: dict[str, JsonValue] = value if isinstance(value, dict) else {}

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def value(self, name: str) -> JsonValue:
        """Return a field as it is; null if it is missing."""
        return self._values.get(name)

    def text(self, name: str) -> str:
        """Return a field that is text; empty if it is not."""
        value = self._values.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int | None:
        """Return a field that is a whole number; None if it is not."""
        value = self._values.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def flag(self, name: str) -> bool:
        """Return whether a field is true."""
        return self._values.get(name) is True

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts in a field that is a list."""
        value = self._values.get(name)
        items = value if isinstance(value, list) else []
        return tuple(item for item in items if isinstance(item, str))

    def fields(self, name: str) -> Fields:
        """Return a field that is an object."""
        return Fields(self._values.get(name))

    def only(self, names: Container[str]) -> Fields:
        """Return the fields of these names."""
        kept = {field: value for field, value in self._values.items() if field in names}
        return Fields(kept) if self.readable else self

    def names(self) -> tuple[str, ...]:
        """Return the names of all fields."""
        return tuple(self._values)

    def json(self) -> dict[str, JsonValue]:
        """Return the object itself."""
        return self._values


def failure_of(failure: Failure) -> tuple[str, str]:
    """Return the type of a failure and its message; the message is empty if it is encoded."""
    kind = failure.application_failure_info.type
    if not kind and failure.HasField("timeout_failure_info"):
        kind = "timeout"
    if failure.HasField("encoded_attributes"):
        return kind, ""
    deeper = failure.cause if failure.HasField("cause") and not kind else None
    if deeper is not None and (deeper.message or deeper.application_failure_info.type):
        return failure_of(deeper)
    return kind, failure.message
