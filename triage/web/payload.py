"""What a delivery says, read strictly as JSON and tolerantly as GitHub's.

Why it exists: of some hundred fields a dozen are needed, and GitHub adds others without notice. So
only those are held to a form, everything else is ignored, and no error quotes what was sent.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
)

from triage.contracts.canonical import canonical_json, parse_json
from triage.contracts.moments import Moment

ADMITTED: Final = frozenset({"opened", "edited", "reopened"})
"""After these an issue's text may be new."""
WITHDRAWN: Final = frozenset({"deleted", "transferred"})
"""After these the issue is no longer here; where it went, it is opened."""

_MAX_INTEGER: Final = 2**63 - 1
Id = Annotated[int, Field(ge=1, le=_MAX_INTEGER)]
Login = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class PayloadError(ValueError):
    """The delivery is not what GitHub sends; quotes nothing of it."""


class Part(BaseModel):
    """A part of a delivery: what is named here has its form, and anything else is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, hide_input_in_errors=True)


class Account(Part):
    """A person or a bot."""

    login: Login


class Issue(Part):
    """An issue; an account that was deleted leaves no user."""

    number: Id
    title: str
    body: str | None = None
    state: str = "open"
    user: Account | None = None
    updated_at: Moment
    pull_request: JsonValue = None


class Repository(Part):
    """Where it is."""

    id: Id
    full_name: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", max_length=200)
    ]


class IssueEvent(Part):
    """That something happened to an issue."""

    action: str
    issue: Issue
    repository: Repository
    sender: Account


def parse_event(body: bytes) -> IssueEvent | None:
    """Read a delivery of the event ``issues``; None if its action is none of ours.

    Raises:
        PayloadError: it is not one JSON object, or a field that is needed is not there.
    """
    value = read_object(body)
    action = value.get("action")
    if not isinstance(action, str) or action not in ADMITTED | WITHDRAWN:
        return None
    try:
        return IssueEvent.model_validate_json(canonical_json(value))
    except ValidationError:
        raise PayloadError("lacks a field, or has one of another form") from None


def read_object(body: bytes) -> dict[str, JsonValue]:
    """Read a delivery strictly as JSON.

    Raises:
        PayloadError: it is not one JSON object.
    """
    try:
        value = parse_json(body, "delivery")
    except ValueError:
        raise PayloadError("is not one JSON document") from None
    if not isinstance(value, dict) or not _is_bounded(value):
        raise PayloadError("is no object, or holds a number that nothing can hold")
    return value


def _is_bounded(value: JsonValue) -> bool:
    """Tell whether every whole number in it is one that databases and other readers take."""
    if isinstance(value, dict):
        return all(map(_is_bounded, value.values()))
    if isinstance(value, list):
        return all(map(_is_bounded, value))
    return not isinstance(value, int) or abs(value) <= _MAX_INTEGER
