"""The part of GitHub's REST API that triage uses, over a commit log.

It behaves as GitHub does also where that is a trap: adding a label that a repository does not have
creates it, and a second request that adds the same label is carried out and succeeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from tests.fakes.commit_log import Action, Change, CommitLog, Via
from tests.fakes.http_server import Request, Response
from tests.fakes.issues import Issue, World, label_key

OPERATION_HEADER: Final = "X-Operation-Key"
NO_OWNER: Final = "-"
"""Stands for the owner in the path of a repository whose name has none."""

MAX_LABELS: Final = 100
MAX_LABEL_CHARS: Final = 50
PAGE_SIZE: Final = 30
MAX_PAGE_SIZE: Final = 100


@dataclass(frozen=True, kw_only=True)
class Write:
    """A request that changes something: the changes as of now, and what to answer then."""

    changes: Callable[[], list[Change]]
    response: Callable[[], Response]


class TrackerApi:
    """Answers requests from what the log tells, and appends to it."""

    def __init__(self, log: CommitLog, on_commit: Callable[[], None]) -> None:
        self._log = log
        self._on_commit = on_commit
        self.world = World(log.entries)

    def commit(self, changes: list[Change]) -> None:
        """Make changes happen, all of them or none."""
        for entry in self._log.append(changes) if changes else []:
            self.world.apply(entry)
        self._on_commit()

    def act(self, change: Change) -> None:
        """Let a person do what is possible: the state of an issue forbids nothing to them.

        Raises:
            ValueError: there is nothing to do it to, or it is so already.
        """
        issue = self.world.find(change.repository, change.issue or "")
        about_issue = change.issue is not None and change.action is not Action.OPENED
        if about_issue and issue is None:
            raise ValueError("there is no such issue")
        if change.action in {Action.LABELED, Action.UNLABELED}:
            there = issue is not None and label_key(change.label or "") in issue.labels
            if there is (change.action is Action.LABELED):
                raise ValueError("the issue has the label, or has it not, already")
        if set(change.data) - {"title", "body", "state", "to", "pull_request"}:
            raise ValueError("there is no such field")
        self.commit([change])

    def route(self, request: Request) -> Response | Write:
        """Return the answer to a read or a refusal, or what a write would do."""
        actor = request.headers.get("authorization", "").partition(" ")[2]
        if not actor:
            return _problem(401, "Requires authentication")
        parts = path_parts(request.path)
        if len(parts) < 4 or parts[0] != "repos":
            return _problem(404, "Not Found")
        repository = parts[2] if parts[1] == NO_OWNER else f"{parts[1]}/{parts[2]}"
        if parts[3:] == ["labels"] and request.method == "GET":
            return _page(request, _names(self.world.inventory(repository)))
        if parts[3] != "issues" or len(parts) < 5:
            return _problem(404, "Not Found")
        issue = self.world.find(repository, parts[4])
        if issue is None:
            return _problem(404, "Not Found")
        return _gone(issue) or self._on_issue(request, actor, issue, parts[5:])

    def _on_issue(
        self, request: Request, actor: str, issue: Issue, rest: list[str]
    ) -> Response | Write:
        who = partial(
            Change,
            actor=actor,
            repository=issue.repository,
            issue=issue.number,
            via=Via.API,
            request=request.id,
            operation=request.headers.get(OPERATION_HEADER.lower()),
        )
        try:
            match (request.method, rest):
                case ("GET", []):
                    return Response.of(shown(issue))
                case ("GET", ["labels"]):
                    return _page(request, _names(issue.labels))
                case ("GET", ["events"]):
                    return _page(request, [event for e in issue.events for event in _event(e)])
                case ("POST", ["labels"]):
                    return self._add_labels(issue, request.json()["labels"], who)
                case ("DELETE", ["labels", name]):
                    return self._remove_label(issue, name, who)
                case ("PATCH", []):
                    return self._edit(issue, request.json(), who)
        except (KeyError, TypeError, ValueError):
            return _problem(400, "Problems parsing JSON")
        return _problem(405, "Method Not Allowed")

    def _add_labels(
        self, issue: Issue, names: list[str], who: Callable[..., Change]
    ) -> Response | Write:
        if issue.locked:
            return _problem(403, "This issue is locked")
        if any(not name.strip() or len(name) > MAX_LABEL_CHARS for name in names):
            return _problem(422, "Validation Failed: name")
        if len({*issue.labels, *map(label_key, names)}) > MAX_LABELS:
            return _problem(422, "Validation Failed: over 100 labels")

        def changes() -> list[Change]:
            return [
                change for name in dict.fromkeys(names) for change in self._put(issue, name, who)
            ]

        return Write(changes=changes, response=lambda: Response.of(_names(issue.labels)))

    def _put(self, issue: Issue, name: str, who: Callable[..., Change]) -> list[Change]:
        key = label_key(name)
        if key in issue.labels:
            return [who(action=Action.REPEATED, label=issue.labels[key])]
        known = self.world.inventory(issue.repository).get(key)
        added = [who(action=Action.LABELED, label=known or name)]
        if known is None:
            added.insert(0, who(action=Action.LABEL_CREATED, label=name, issue=None))
        return added

    def _remove_label(
        self, issue: Issue, name: str, who: Callable[..., Change]
    ) -> Response | Write:
        found = issue.labels.get(label_key(name))
        if found is None:
            return _problem(404, "Label does not exist")
        change = who(action=Action.UNLABELED, label=found)
        return Write(changes=lambda: [change], response=lambda: Response.of(_names(issue.labels)))

    def _edit(
        self, issue: Issue, wanted: dict[str, Any], who: Callable[..., Change]
    ) -> Response | Write:
        data = {name: wanted[name] for name in ("title", "body", "state") if name in wanted}
        if data.get("state", "open") not in {"open", "closed"}:
            return _problem(422, "Validation Failed: state")
        change = who(action=Action.EDITED, data=data)
        return Write(changes=lambda: [change], response=lambda: Response.of(shown(issue)))


def path_parts(path: str) -> list[str]:
    """Return the parts of a path, each unquoted by itself."""
    return [unquote(part, errors="surrogatepass") for part in path.split("/")[1:]]


def shown(issue: Issue) -> dict[str, Any]:
    """Return an issue as the API shows it."""
    return {
        "number": issue.number,
        "title": issue.title,
        "body": issue.body,
        "state": issue.state,
        "locked": issue.locked,
        "user": {"login": issue.author},
        "labels": _names(issue.labels),
    }


def _gone(issue: Issue) -> Response | None:
    if issue.deleted:
        return _problem(410, "This issue was deleted")
    if issue.moved_to is not None:
        return Response.of({"message": "Moved Permanently"}, 301, {"Location": issue.moved_to})
    return None


def _names(labels: dict[str, str]) -> list[dict[str, Any]]:
    return [{"name": name} for name in labels.values()]


def _event(entry: Change) -> list[dict[str, Any]]:
    """Return the event that people see of a change; a repeated label leaves none."""
    if entry.action in {Action.OPENED, Action.REPEATED}:
        return []
    label = {} if entry.label is None else {"label": {"name": entry.label}}
    return [{"event": entry.action.value, "actor": {"login": entry.actor}, **label}]


def _page(request: Request, items: list[dict[str, Any]]) -> Response:
    size = min(int(request.query.get("per_page", PAGE_SIZE)), MAX_PAGE_SIZE)
    page = int(request.query.get("page", "1"))
    after = page * size
    link = f'<{request.path}?per_page={size}&page={page + 1}>; rel="next"'
    headers = {"Link": link} if after < len(items) else {}
    return Response.of(items[after - size : after], headers=headers)


def _problem(status: int, message: str) -> Response:
    return Response.of({"message": message}, status)
