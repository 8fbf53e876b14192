"""`triage issues`: what people do with the local tracker."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from triage.cli.errors import InputError, RefusedError
from triage.cli.inputs import read_bytes
from triage.cli.output import Format, beside, columns, put, put_json, put_table, say
from triage.cli.references import check_part
from triage.cli.running import run
from triage.cli.stores import CREATE, open_store, place
from triage.cli.text import fold, shorten
from triage.cli.times import told
from triage.contracts.base import (
    MAX_BODY_CHARS,
    MAX_NAME_CHARS,
    MAX_REQUEST_ID_CHARS,
    MAX_TITLE_CHARS,
)
from triage.contracts.canonical import clean_text
from triage.contracts.options import DEFAULT_REPOSITORY
from triage.trackers.base import IssueNotFound, TrackedIssue
from triage.trackers.local import LocalTracker
from triage.trackers.local_people import IssueRecord

TITLE_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class NewIssue:
    """What the command line says."""

    repository: str
    number: str | None
    title: str
    body: str
    author: str


def body_of(body: str | None, file: Path | None) -> str:
    """Return the text that is given either way.

    Raises:
        InputError: neither or both are given, or the file is not text.
    """
    if (body is None) == (file is None):
        raise InputError("give the text with --body or --body-file", "one of them, not both")
    if file is None:
        return body or ""
    try:
        return read_bytes(file).decode()
    except UnicodeDecodeError:
        raise InputError(f"{file}: is not UTF-8 text") from None


def add(issue: NewIssue, format_: Format, *, create: bool = False) -> None:
    """Open an issue and print its number.

    Raises:
        RefusedError: there is no database, and none is to be made.
        InputError: a text is blank or too long, or no command could name the issue.
        TrackerRefused: the number is taken.
    """
    checked = _checked(issue)
    added = run(_add(checked, create=create))
    if format_ is Format.JSON:
        put_json(as_json(added))
    else:
        put(added.number)


def list_all(repository: str, format_: Format) -> None:
    """Print a repository's issues, oldest first.

    Raises:
        RefusedError: there is no database.
    """
    found = run(_list(repository))
    if format_ is Format.JSON:
        put_json([as_json(issue) for issue in found])
    elif found:
        put_table(("NUMBER", "STATE", "LABELS", "TITLE"), [_cells(issue) for issue in found])
    else:
        say(f"there are no issues in {repository} of {place()}", _add_hint(repository))


def _add_hint(repository: str) -> str:
    where = "" if repository == DEFAULT_REPOSITORY else f" --repository {shlex.quote(repository)}"
    return f"open one: triage issues add{where} --title TITLE --body TEXT"


def show(repository: str, number: str, format_: Format) -> None:
    """Print one issue with what happened to it.

    Raises:
        RefusedError: there is no such issue, or no database.
    """
    found = run(_show(repository, number))
    if isinstance(found, IssueNotFound):
        raise RefusedError(
            f"there is no issue {number} in {repository}", "'triage issues list' shows them"
        )
    if format_ is Format.JSON:
        put_json(found.to_dict())
    else:
        put(*issue_lines(found))


def as_json(issue: TrackedIssue) -> dict[str, JsonValue]:
    """Return an issue without its text, as a program is told of it."""
    return {
        "repository": issue.repository,
        "number": issue.number,
        "title": issue.title,
        "state": issue.state,
        "labels": list(issue.labels),
    }


def issue_lines(record: IssueRecord) -> list[str]:
    """Return an issue for people; lines of its text stand behind a bar."""
    issue = record.issue
    locked = ", locked" if issue.locked else ""
    return [
        f"{issue.repository}#{issue.number}  {issue.state}{locked}",
        *beside("title   ", issue.title),
        *beside("author  ", issue.author or "-"),
        *beside("labels  ", ", ".join(issue.labels) or "-"),
        *(f"  | {piece}" for line in issue.body.split("\n") for piece in fold(line, columns() - 4)),
        "events",
        *(f"  {line}" for line in event_lines(record)),
    ]


def event_lines(record: IssueRecord) -> list[str]:
    """Return what happened to an issue, one event a line."""
    return [_event_line(event.to_dict()) for event in record.events]


def _event_line(event: dict[str, Any]) -> str:
    label, by = event["label"] or "", event["by"] or "-"
    return f"{told(str(event['at']))}  {event['action']}  {label}  by {by}"


def _checked(issue: NewIssue) -> NewIssue:
    limits = (
        ("title", issue.title, MAX_TITLE_CHARS),
        ("body", issue.body, MAX_BODY_CHARS),
        ("repository", issue.repository, MAX_NAME_CHARS),
        ("number", issue.number or "-", MAX_REQUEST_ID_CHARS),
    )
    for name, text, limit in limits:
        if not text.strip():
            raise InputError(f"the {name} is blank")
        if len(text) > limit:
            raise InputError(f"the {name} has more than {limit:,} characters")
    check_part("repository", issue.repository)
    check_part("number", issue.number or "-")
    number = None if issue.number is None else clean_text(issue.number)
    texts = (issue.title, issue.body, issue.author)
    return NewIssue(clean_text(issue.repository), number, *map(clean_text, texts))


async def _add(issue: NewIssue, *, create: bool) -> TrackedIssue:
    async with open_store(create=create, hint=CREATE) as store:
        return await LocalTracker(store).create_issue(
            issue.repository,
            title=issue.title,
            body=issue.body,
            author=issue.author,
            number=issue.number,
        )


async def _list(repository: str) -> tuple[TrackedIssue, ...]:
    async with open_store(create=False) as store:
        return await LocalTracker(store).list_issues(repository)


async def _show(repository: str, number: str) -> IssueRecord | IssueNotFound:
    async with open_store(create=False) as store:
        return await LocalTracker(store).show_issue(repository, number)


def _cells(issue: TrackedIssue) -> tuple[str, ...]:
    labels = ", ".join(issue.labels) or "-"
    return (issue.number, issue.state, labels, shorten(issue.title, TITLE_CHARS))
