"""The request that starts a run, read strictly from raw JSON."""

from __future__ import annotations

from typing import Annotated, NewType

from pydantic import AfterValidator, Field, JsonValue, StringConstraints, ValidationError

from triage.contracts.base import (
    MAX_BODY_CHARS,
    MAX_PATHS,
    MAX_REQUEST_ID_CHARS,
    MAX_TITLE_CHARS,
    Contract,
    ContractError,
    NonEmpty,
    explain,
)
from triage.contracts.canonical import canonical_json, clean

RequestId = NewType("RequestId", str)
RunId = NewType("RunId", str)


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


ShortText = Annotated[
    str, StringConstraints(max_length=MAX_REQUEST_ID_CHARS), AfterValidator(_not_blank)
]
TitleText = Annotated[
    str, StringConstraints(max_length=MAX_TITLE_CHARS), AfterValidator(_not_blank)
]
BodyText = Annotated[str, StringConstraints(max_length=MAX_BODY_CHARS), AfterValidator(_not_blank)]


class TriageRequest(Contract):
    """One issue to triage: exactly these five fields, each string non-blank.

    Source: the production agent's AgentRequest.
    """

    request_id: ShortText
    title: TitleText
    body: BodyText
    changed_paths: Annotated[tuple[NonEmpty, ...], Field(max_length=MAX_PATHS)]
    source: ShortText


def parse_request(value: JsonValue, *, to_author: bool = False) -> TriageRequest:
    """Validate a decoded JSON value as a request; `to_author` is that of `explain`.

    Raises:
        ContractError: the message names the field and what is wrong with it.
    """
    if not isinstance(value, dict):
        raise ContractError("request must be a JSON object")
    try:
        return TriageRequest.model_validate_json(canonical_json(clean(value, "request")))
    except ValidationError as error:
        told = explain(error, "request", TriageRequest, to_author=to_author)
        raise ContractError(told) from None


def changed_fields(before: TriageRequest, after: TriageRequest) -> tuple[str, ...]:
    """Return the names of the fields in which two requests differ."""
    names = TriageRequest.model_fields
    return tuple(name for name in names if getattr(before, name) != getattr(after, name))


def claimed_request_id(value: JsonValue) -> RequestId:
    """Return the id that an invalid request gives, as text, or ``invalid`` if it gives none.

    The text is Python's own rendering of the value, as in the source document.
    """
    given = value.get("request_id", "invalid") if isinstance(value, dict) else "invalid"
    return RequestId(str(given)[:MAX_REQUEST_ID_CHARS])


def run_id_of(request_id: str) -> RunId:
    """Return the deterministic run id of a request."""
    return RunId(f"run-{request_id}")
