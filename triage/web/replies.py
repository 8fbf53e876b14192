"""A delivery as it arrived, and what its sender is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from triage.storage.admission import Answer, Meaning

DATABASE_PAUSE_SECONDS: Final = 10


@dataclass(frozen=True, kw_only=True)
class Received:
    """A delivery as it arrived: nothing of it was checked."""

    body: bytes
    signatures: Sequence[str]
    delivery_id: str
    event: str
    content_type: str


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the sender is told.

    Attributes:
        status: of HTTP.
        outcome: a word.
        code: why; empty if there is nothing to say.
        request: the request's opaque key, if there is one.
        retry_after: seconds; 0 if there is nothing to wait for.
    """

    status: int
    outcome: str
    code: str = ""
    request: str | None = None
    retry_after: int = 0

    def document(self) -> dict[str, str | None]:
        """Return it as the body of an answer."""
        return {"outcome": self.outcome, "code": self.code or None, "request": self.request}


_OUTCOMES: Final[Mapping[Meaning, str]] = {
    Meaning.ACCEPTED: "accepted",
    Meaning.UNUSABLE: "refused",
    Meaning.BARRED: "refused",
}


def told(answer: Answer) -> Reply:
    """Say what became of a delivery."""
    if answer.meaning is Meaning.REUSED:
        return refused(409, Meaning.REUSED)
    accepted = answer.meaning is Meaning.ACCEPTED
    return Reply(
        status=202,
        outcome=_OUTCOMES.get(answer.meaning, "ignored"),
        code="" if accepted else answer.meaning,
        request=answer.request_key,
    )


def refused(status: int, code: str, retry_after: int = 0) -> Reply:
    """Say that a delivery is not taken, and why."""
    return Reply(status=status, outcome="refused", code=code, retry_after=retry_after)


def ignored(code: str) -> Reply:
    """Say that a delivery asks for nothing, and why."""
    return Reply(status=202, outcome="ignored", code=code)
