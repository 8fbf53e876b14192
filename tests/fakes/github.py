"""A GitHub over real HTTP, whose questions and answers are held to GitHub's own description.

It is the fake tracker's server, fault plan and commit log with GitHub's answers: whole objects,
labels with ids, pages by links that name a repository by its id, Apps with tokens for one
repository, files, and everything that makes an issue no issue any more.
"""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.fakes import github_shapes as shapes
from tests.fakes.commit_log import Action, Change, CommitLog, Entry, Via
from tests.fakes.control import TrackerControl
from tests.fakes.github_people import App, Caller, People
from tests.fakes.http_server import Request, Response
from tests.fakes.issues import Issue
from tests.fakes.openapi import answer_breaches, question_breaches
from tests.fakes.tracker import serving
from tests.fakes.tracker_api import (
    MAX_LABEL_CHARS,
    MAX_LABELS,
    OPERATION_HEADER,
    TrackerApi,
    Write,
    path_parts,
)
from triage.trackers.base import label_key

PAGE_SIZE: Final = 30
MAX_PAGE_SIZE: Final = 100


class GitHubApi(TrackerApi):
    """Answers as GitHub does, from what the log tells.

    Attributes:
        people: who may call, and as whom.
        files: what the repositories hold, by repository and path.
        prefix: in front of every path, as on an Enterprise server.
        is_compressing: whether answers are compressed.
        request_id: what every request is called in its answer; each has its own while it is empty.
        unknown_owners: whom CODEOWNERS files name, and who are nobody.
        breaches: each way in which a question or an answer was not as GitHub describes it.
        seen: the headers of every request, in order.
    """

    def __init__(
        self, log: CommitLog, on_commit: Callable[[], None], *, app: App | None = None
    ) -> None:
        super().__init__(log, on_commit)
        self._entries = log.entries
        self.people = People(app)
        self.files: dict[tuple[str, str], bytes | dict[str, Any] | list[Any]] = {}
        self.prefix = ""
        self.is_compressing = False
        self.request_id = ""
        self.unknown_owners: set[str] = set()
        self.breaches: list[str] = []
        self.seen: list[dict[str, str]] = []

    def route(self, request: Request) -> Response | Write:
        """Return the answer to a read or a refusal, or what a write would do."""
        self.seen.append(request.headers)
        path = request.path.removeprefix(self.prefix)
        query = set(request.query)
        self.breaches += question_breaches(request.method, path, query, request.body)
        found = self._route(request, path)
        if isinstance(found, Response):
            return self._checked(request, path, found)
        write = found
        return Write(
            changes=write.changes,
            response=lambda: self._checked(request, path, write.response()),
        )

    def _checked(self, request: Request, path: str, response: Response) -> Response:
        self.breaches += answer_breaches(request.method, path, response.status, response.body)
        headers = {**response.headers, "X-GitHub-Request-Id": self.request_id or request.id}
        if not self.is_compressing:
            return replace(response, headers=headers)
        headers |= {"Content-Encoding": "gzip"}
        return replace(response, body=gzip.compress(response.body), headers=headers)

    def _route(self, request: Request, path: str) -> Response | Write:
        caller = self.people.who(request.headers.get("authorization", ""))
        if caller is None:
            return _problem(401, "Bad credentials")
        parts = path_parts(path)
        if parts[0] != "repos":
            return self.people.answer(request, parts, caller) or _problem(404, "Not Found")
        repository = "/".join(parts[1:3])
        if parts[3:] == ["installation"]:
            return self.people.installation(caller, repository) or _problem(404, "Not Found")
        if not caller.sees(repository):
            return _problem(404, "Not Found")
        return self._in_repository(request, caller, repository, parts[3:])

    def _in_repository(
        self, request: Request, caller: Caller, repository: str, rest: list[str]
    ) -> Response | Write:
        if (told := self._about(request, repository, rest)) is not None:
            return told
        match rest:
            case ["labels"]:
                shown = self._labels(repository, self.world.inventory(repository))
                return _page(request, repository, shown)
            case ["commits"]:
                return self._with("contents", caller, [shapes.commit(repository)])
            case ["codeowners", "errors"]:
                errors = shapes.unknown_owners(self.files, repository, self.unknown_owners)
                return self._with("contents", caller, {"errors": errors})
            case ["contents", *path]:
                return self._file(request, caller, repository, "/".join(path))
            case ["issues", number, *what]:
                found = self.world.find(repository, number)
                if found is None:
                    return _problem(404, "Not Found")
                return _gone(found) or self._on_issue_of(request, caller, found, what)
        return _problem(404, "Not Found")

    def _about(self, request: Request, repository: str, rest: list[str]) -> Response | None:
        match rest:
            case []:
                return Response.of(shapes.repository(repository))
            case ["issues"]:
                return self._listed(request, repository)
            case ["collaborators", login, "permission"]:
                return Response.of(self.people.permission(repository, login))
        return None

    def _listed(self, request: Request, repository: str) -> Response:
        """Answer as the list of a repository's issues does, pull requests among them."""
        asked = request.query
        since, state = asked.get("since", ""), asked.get("state", "open")
        found = [
            shapes.issue(issue, self._on(issue))
            for (where, _), issue in self.world.issues.items()
            if where == repository and not issue.deleted and issue.moved_to is None
            if state in {"all", issue.state}
        ]
        by = f"{asked.get('sort', 'created')}_at"
        found.sort(key=lambda shape: (shape[by], shape["number"]))
        shown = [shape for shape in found if shape["updated_at"] >= since]
        if asked.get("direction", "desc") == "desc":
            shown.reverse()
        return _page(request, repository, shown)

    def _with(self, permission: str, caller: Caller, value: Any) -> Response:  # noqa: ANN401 - any JSON
        if not caller.may(permission, "read"):
            return _problem(404, "Not Found")
        return Response.of(value)

    def _file(self, request: Request, caller: Caller, repository: str, path: str) -> Response:
        """Answer for the one commit that there is: what names none may be about another."""
        found = self.files.get((repository, path))
        if found is None or request.query.get("ref") != shapes.head(repository):
            return _problem(404, "Not Found")
        value: Any = found
        if isinstance(found, bytes):
            value = shapes.content(repository, path, found)
        return self._with("contents", caller, value)

    def _on_issue_of(
        self, request: Request, caller: Caller, issue: Issue, what: list[str]
    ) -> Response | Write:
        who = partial(
            Change,
            actor=caller.login,
            repository=issue.repository,
            issue=issue.number,
            via=Via.API,
            request=request.id,
            operation=request.headers.get(OPERATION_HEADER.lower()),
        )
        match (request.method, what):
            case ("GET", []):
                return Response.of(shapes.issue(issue, self._on(issue)))
            case ("GET", ["events"]):
                events = [self._event(e) for e in issue.events if e.action in shapes.EVENTS]
                return _page(request, issue.repository, events)
            case ("POST", ["labels"]):
                return _may_write(caller) or self._add(issue, request.json()["labels"], who)
            case ("DELETE", ["labels", name]):
                return _may_write(caller) or self._remove(issue, name, who)
        return _problem(404, "Not Found")

    def _event(self, entry: Entry) -> dict[str, Any]:
        app = self.people.app
        did = app is not None and entry.actor == app.login
        return shapes.event(entry, app.shape() if app and did else None)

    def _add(self, issue: Issue, names: list[str], who: Callable[..., Change]) -> Response | Write:
        if issue.locked:
            return _problem(403, "Issue is locked")
        if any(not name.strip() or len(name) > MAX_LABEL_CHARS for name in names):
            return _invalid("name")
        if len({*issue.labels, *map(label_key, names)}) > MAX_LABELS:
            return _invalid("labels")
        return Write(
            changes=lambda: [
                c for name in dict.fromkeys(names) for c in self._put(issue, name, who)
            ],
            response=lambda: Response.of(self._on(issue)),
        )

    def _remove(self, issue: Issue, name: str, who: Callable[..., Change]) -> Response | Write:
        found = issue.labels.get(label_key(name))
        if found is None:
            return _problem(404, "Label does not exist")
        change = who(action=Action.UNLABELED, label=found)
        return Write(changes=lambda: [change], response=lambda: Response.of(self._on(issue)))

    def _on(self, issue: Issue) -> list[dict[str, Any]]:
        return self._labels(issue.repository, issue.labels)

    def _labels(self, repository: str, names: dict[str, str]) -> list[dict[str, Any]]:
        ids = shapes.ids_of_labels(list(self._entries))
        return [
            shapes.label(repository, name, ids.get((repository, key), 1))
            for key, name in names.items()
        ]


@dataclass(frozen=True, kw_only=True)
class GitHub:
    """A running fake GitHub: its API's insides, and the test's hand on it."""

    api: GitHubApi
    control: TrackerControl
    log: Path = field(repr=False)


@asynccontextmanager
async def serving_github(log: Path, *, app: App | None = None) -> AsyncIterator[GitHub]:
    """Run a GitHub in this process; it ends by saying what was not as GitHub describes it."""
    made: list[GitHubApi] = []

    def make(entries: CommitLog, tell: Callable[[], None]) -> GitHubApi:
        made.append(GitHubApi(entries, tell, app=app))
        return made[0]

    async with serving(log, make=make) as running:
        control = TrackerControl(running.api.address, running.control.address)
        yield GitHub(api=made[0], control=control, log=log)
    assert not made[0].breaches, "\n".join(made[0].breaches)


def _may_write(caller: Caller) -> Response | None:
    if caller.may("issues", "write"):
        return None
    return _problem(403, "Resource not accessible by integration")


def _gone(issue: Issue) -> Response | None:
    if issue.deleted:
        return _problem(410, "This issue was deleted")
    if issue.moved_to is not None:
        moved = {"message": "Moved Permanently", "url": issue.moved_to}
        return Response.of(moved, 301, {"Location": issue.moved_to})
    return None


def _page(request: Request, repository: str, items: list[dict[str, Any]]) -> Response:
    size = min(int(request.query.get("per_page", PAGE_SIZE)), MAX_PAGE_SIZE)
    page = int(request.query.get("page", "1"))
    after = page * size
    end = request.path.partition(f"/repos/{repository}")[2]
    here = f"http://{request.headers['host']}/repositories/{shapes.number_of(repository)}{end}"
    link = f'<{here}?per_page={size}&page={page + 1}>; rel="next", <{here}?page=9>; rel="last"'
    headers = {"Link": link} if after < len(items) else {}
    return Response.of(items[after - size : after], headers=headers)


def _problem(status: int, message: str) -> Response:
    return Response.of({"message": message, "status": str(status)}, status)


def _invalid(what: str) -> Response:
    errors = [{"resource": "Label", "code": "invalid", "field": what}]
    value = {"message": "Validation Failed", "documentation_url": "", "errors": errors}
    return Response.of(value, 422)
