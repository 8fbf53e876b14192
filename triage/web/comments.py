"""What a comment says: whether it is a person's answer to an operation, read as GitHub renders it.

Why it exists: an order that is quoted, shown as code or hidden is none, and what a mail program
quotes without a mark cannot be told from what was written. So only a comment that says nothing
else is an answer, and it is parsed as Markdown: whoever reads it sees the very line that counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final

from markdown_it import MarkdownIt
from pydantic import JsonValue, StringConstraints, ValidationError

from triage.contracts.approval import Verdict
from triage.contracts.canonical import canonical_json
from triage.contracts.moments import Moment
from triage.web.payload import Id, Login, Part, PayloadError, Repository, read_object

CREATED: Final = "created"
MAX_COMMENT_CHARS: Final = 8_192
"""A longer comment is no answer: parsing what a stranger wrote has its bounds."""
HUMAN: Final = "User"
BOT_ENDING: Final = "[bot]"

_ORDER: Final = re.compile(
    r"/triage[ \t]+(?P<verdict>approve|reject)[ \t]+(?P<operation>\S{1,200})[ \t]+"
    r"v(?P<version>0|[1-9][0-9]{0,14})"
)
_PARSER: Final = MarkdownIt("commonmark")


class Human(Part):
    """An account with its stable id; `type` is ``User`` for a person's."""

    login: Login
    id: Id
    type: str = ""


class CommentedIssue(Part):
    """The issue that a comment is on."""

    number: Id
    user: Human | None = None
    pull_request: JsonValue = None


class Comment(Part):
    """A comment; one that an App made in somebody's name says so."""

    id: Id
    body: Annotated[str, StringConstraints(max_length=1_048_576)] | None = None
    user: Human | None = None
    created_at: Moment
    performed_via_github_app: JsonValue = None


class CommentEvent(Part):
    """That something happened to a comment."""

    action: str
    issue: CommentedIssue
    comment: Comment
    repository: Repository
    sender: Human


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a comment says: exactly one answer to exactly one operation at one version."""

    verdict: Verdict
    operation_id: str
    version: int


def parse_comment_event(body: bytes) -> CommentEvent | None:
    """Read a delivery of the event ``issue_comment``; None unless a comment was created.

    Edits and deletions mean nothing: what was answered was answered.

    Raises:
        PayloadError: it is not one JSON object, or a field that is needed is not there.
    """
    value = read_object(body)
    if value.get("action") != CREATED:
        return None
    try:
        return CommentEvent.model_validate_json(canonical_json(value))
    except ValidationError:
        raise PayloadError("lacks a field, or has one of another form") from None


def order_in(text: str) -> Order | None:
    """Return the order that a comment is, or None if it is anything else, or holds anything else.

    Text before or after it may be a mail that quotes it, hide it, or take it back.
    """
    if len(text) > MAX_COMMENT_CHARS:
        return None
    form = _ORDER.fullmatch(line := text.strip(" \t\r\n"))
    if form is None or not _is_plain(text, line):
        return None
    return Order(
        verdict=Verdict(form["verdict"]),
        operation_id=form["operation"],
        version=int(form["version"]),
    )


def is_by_machine(event: CommentEvent) -> bool:
    """Whether anybody but a person wrote it, or somebody other than who sent it."""
    comment, user = event.comment, event.comment.user
    if user is None or comment.performed_via_github_app is not None:
        return True
    accounts = (user, event.sender)
    is_machine = any(a.type != HUMAN or a.login.endswith(BOT_ENDING) for a in accounts)
    return is_machine or user.id != event.sender.id


def _is_plain(text: str, line: str) -> bool:
    """Tell whether it is one paragraph, in which the line is shown to the letter."""
    tokens = _PARSER.parse(text)
    if [token.type for token in tokens] != ["paragraph_open", "inline", "paragraph_close"]:
        return False
    shown = [(child.type, child.content) for child in tokens[1].children or ()]
    return shown == [("text", line)]
