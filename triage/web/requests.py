"""The request that an issue's text becomes, and the identity under which it is admitted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from triage.contracts.canonical import canonical_json, digest_of
from triage.contracts.options import DEFAULT_TENANT, IssueContext
from triage.contracts.request import parse_request
from triage.storage.admission import Content, Subject
from triage.web.payload import Issue, IssueEvent

if TYPE_CHECKING:
    from triage.web.comments import CommentEvent

SOURCE: Final = "github"
NO_TITLE: Final = "(no title)"
NO_BODY: Final = "(no description)"
"""A request has no blank parts, and many an issue has no text."""

MAX_DOCUMENT_BYTES: Final = 2_000_000
"""A little less than the 2 MiB that the server takes as one input."""


class UnusableError(ValueError):
    """The text cannot be a request: it is larger than any."""


def subject_of(event: IssueEvent | CommentEvent) -> Subject:
    """Return which issue an event is about."""
    return Subject(
        tenant=DEFAULT_TENANT,
        source=SOURCE,
        repository=event.repository.full_name,
        repository_id=str(event.repository.id),
        number=str(event.issue.number),
    )


def content_of(issue: Issue, subject: Subject, tracker: str) -> Content:
    """Return the issue's text, with what a run is started with.

    Args:
        issue: as it is.
        subject: the same, under the name by which it is admitted.
        tracker: the tracker that the run reads it from.

    Raises:
        UnusableError: no run takes it.
    """
    request = request_of(issue.title, issue.body or "", subject)
    context = IssueContext(
        tenant=subject.tenant,
        tracker=tracker,
        repository=subject.repository,
        issue=subject.number,
        author=issue.user.login if issue.user else None,
    )
    options = {"context": context.model_dump(exclude_none=True)}
    document = canonical_json({"request": request, "options": options})
    try:
        parse_request(request)
    except ValueError:
        raise UnusableError("no run takes this text") from None
    if _sent_size(request) > MAX_DOCUMENT_BYTES:
        raise UnusableError("no server takes this text")
    text: list[JsonValue] = [issue.title, issue.body or ""]
    return Content(digest=digest_of(text), at=issue.updated_at, document=document)


def request_of(title: str, body: str, subject: Subject) -> dict[str, JsonValue]:
    """Return the request; its id is the issue's, so that a later text is an edit of it."""
    return {
        "request_id": f"{subject.source}-{subject.key}",
        "title": title if title.strip() else NO_TITLE,
        "body": body if body.strip() else NO_BODY,
        "changed_paths": [],
        "source": subject.source,
    }


def _sent_size(request: dict[str, JsonValue]) -> int:
    return len(json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode())
