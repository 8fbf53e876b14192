"""What a comment says: whether it is a person's answer to an operation, read as GitHub renders it.

Why it exists: an order that is quoted, shown as code or hidden is none. So a comment is parsed as
Markdown, and only a paragraph of its own, at the top and of plain text, can be an answer. Whoever
reads the comment on GitHub sees the very line that counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pydantic import AwareDatetime, JsonValue, StringConstraints, ValidationError

from triage.contracts.approval import Verdict
from triage.contracts.canonical import canonical_json
from triage.web.payload import Id, Login, Part, PayloadError, Repository, read_object

CREATED: Final = "created"
MAX_COMMENT_CHARS: Final = 8_192
"""A longer comment is no answer: parsing what a stranger wrote has its bounds."""
FOOTNOTE: Final = "[^"
HUMAN: Final = "User"
BOT_ENDING: Final = "[bot]"

_ORDER: Final = re.compile(
    r"/triage[ \t]+(?P<verdict>approve|reject)[ \t]+(?P<operation>\S{1,200})[ \t]+"
    r"v(?P<version>0|[1-9][0-9]{0,14})"
)
_HINT: Final = re.compile(r"^ {0,3}/triage[ \t]", re.MULTILINE)
_RAW: Final = frozenset({"html_block", "html_inline"})
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
    created_at: AwareDatetime
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
    """Return the one order that a comment gives, or None if it gives none, or more than one.

    A comment with HTML in it gives none: what it hides or makes a quote of cannot be told. Nor does
    one with a footnote, which GitHub knows and this parser does not: one that nobody refers to is
    not shown, with the lines that belong to it.
    """
    if len(text) > MAX_COMMENT_CHARS or FOOTNOTE in text or not _HINT.search(text):
        return None
    tokens = _PARSER.parse(text)
    if any(_is_raw(token) for token in tokens):
        return None
    found = [order for order in map(_order, _paragraphs(tokens)) if order is not None]
    return found[0] if len(found) == 1 else None


def is_by_machine(event: CommentEvent) -> bool:
    """Whether anybody but a person wrote it, or somebody other than who sent it."""
    comment, user = event.comment, event.comment.user
    if user is None or comment.performed_via_github_app is not None:
        return True
    accounts = (user, event.sender)
    is_machine = any(a.type != HUMAN or a.login.endswith(BOT_ENDING) for a in accounts)
    return is_machine or user.id != event.sender.id


def _is_raw(token: Token) -> bool:
    return token.type in _RAW or any(child.type in _RAW for child in token.children or ())


def _paragraphs(tokens: list[Token]) -> list[str]:
    """Return the text of each paragraph that stands in nothing else and is plain text alone."""
    found = []
    for opening, inline in pairwise(tokens):
        if opening.type != "paragraph_open" or opening.level:
            continue
        children = inline.children or []
        if [child.type for child in children] == ["text"]:
            found.append(children[0].content)
    return found


def _order(text: str) -> Order | None:
    form = _ORDER.fullmatch(text.strip(" \t"))
    if form is None:
        return None
    return Order(
        verdict=Verdict(form["verdict"]),
        operation_id=form["operation"],
        version=int(form["version"]),
    )
