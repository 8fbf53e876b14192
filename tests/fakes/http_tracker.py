"""The `Tracker` over HTTP, as the write path will meet it in production.

Why it exists: crash tests need a write that crosses a real wire. Each call has one deadline for
everything that it takes, asks once, follows nothing, and says what its failure proves.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import quote

from pydantic import JsonValue

from tests.fakes.http_answers import GONE, problem_of, problem_without, value_of
from tests.fakes.http_client import Answer, Call, NoAnswer, NotSent, Step, exchange
from tests.fakes.issues import label_key
from tests.fakes.tracker_api import NO_OWNER, OPERATION_HEADER
from triage.trackers.base import (
    IssueNotFound,
    LabelPresence,
    LabelRefusal,
    LabelResult,
    LabelsAdded,
    LabelStatus,
    TrackedIssue,
    TrackerRefused,
    TrackerTimeout,
    TrackerUnavailable,
    content_digest,
    is_label,
)

BOT: Final = "bounded-triage[bot]"
MAX_PAGES: Final = 20
PAGE_SIZE: Final = 100


class HttpTracker:
    """Issues behind a REST API like GitHub's.

    Args:
        address: of the API, such as ``http://127.0.0.1:8080``.
        token: who we are.
        deadline_seconds: for one method, all its requests together.
        max_bytes: of one answer.
        on_step: told how far the request that writes has come, and of no other.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str = BOT,
        deadline_seconds: float = 5.0,
        max_bytes: int = 1_048_576,
        on_step: Callable[[Step], None] = lambda _step: None,
    ) -> None:
        self._address = address
        self._token = token
        self._deadline_seconds = deadline_seconds
        self._max_bytes = max_bytes
        self._on_step = on_step

    async def admit_issue(
        self,
        repository: str,
        number: str,
        *,
        title: str,
        body: str,
        author: str | None,
        labels: Sequence[str],
    ) -> TrackedIssue:
        """Return the issue: this tracker only looks."""
        issue = await self.get_issue(repository, number)
        if isinstance(issue, IssueNotFound):
            raise TrackerRefused("issue_not_found", "the tracker has no such issue")
        return issue

    async def get_issue(self, repository: str, number: str) -> TrackedIssue | IssueNotFound:
        """Return the issue as it is now."""
        return await self._reading(self._deadline()).find(repository, number)

    async def label_inventory(self, repository: str) -> tuple[str, ...]:
        """Return the labels that exist in a repository, sorted by name."""
        return await self._reading(self._deadline()).inventory(repository)

    async def label_presence(
        self, repository: str, number: str, labels: Sequence[str]
    ) -> tuple[LabelPresence, ...] | IssueNotFound:
        """Say for each label where it stands on the issue."""
        reading = self._reading(self._deadline())
        issue = await reading.find(repository, number)
        if isinstance(issue, IssueNotFound):
            return issue
        on, removed = set(map(label_key, issue.labels)), await reading.removed(repository, number)
        return tuple(_presence(label_key(name), on, removed) for name in labels)

    async def add_labels(
        self,
        repository: str,
        number: str,
        labels: Sequence[str],
        *,
        by: str,
        operation_key: str,
    ) -> LabelsAdded:
        """Add labels, and do nothing else: see `Tracker.add_labels`."""
        deadline = self._deadline()
        try:
            plan = await self._plan(deadline, repository, number, labels)
        except TrackerTimeout as error:
            # Only reads so far.
            raise TrackerUnavailable(str(error), effect_possible=False) from None
        wanted = list(plan.added)
        if not wanted:
            return plan
        headers = {OPERATION_HEADER: operation_key, "User-Agent": by}
        body = json.dumps({"labels": wanted}).encode("ascii")
        path = f"{_issue_path(repository, number)}/labels"
        call = self._call("POST", path, deadline, headers, body)
        answer = value_of(await _ask(call), writing=True)
        seen = set(map(label_key, _names(answer, writing=True)))
        if not seen.issuperset(map(label_key, wanted)):
            raise TrackerUnavailable("the labels are not there", effect_possible=True)
        return plan

    async def _plan(
        self, deadline: float, repository: str, number: str, labels: Sequence[str]
    ) -> LabelsAdded:
        """Read what adding `labels` would come to."""
        reading = self._reading(deadline)
        issue = await reading.issue(repository, number)
        if issue.locked:
            raise TrackerRefused("issue_locked", "the issue is locked")
        known = {label_key(x): x for x in await reading.inventory(repository) if is_label(x)}
        if any(label_key(name) not in known for name in labels):
            return LabelsAdded(results=tuple(_unknown(name, known) for name in labels))
        on, removed = set(map(label_key, issue.labels)), await reading.removed(repository, number)
        results = []
        for key in map(label_key, labels):
            results.append(_result(known[key], _presence(key, on, removed)))
            on.add(key)
        return LabelsAdded(results=tuple(results))

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._deadline_seconds

    def _reading(self, deadline: float) -> _Reading:
        return _Reading(lambda path: self._call("GET", path, deadline))

    def _call(
        self,
        method: str,
        path: str,
        deadline: float,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> Call:
        return Call(
            method=method,
            url=self._address + path,
            headers={"Authorization": f"Bearer {self._token}", **(headers or {})},
            body=body,
            deadline=deadline,
            max_bytes=self._max_bytes,
            on_step=self._on_step if body else lambda _step: None,
        )


class _Reading:
    """Reads under one deadline."""

    def __init__(self, call: Callable[[str], Call]) -> None:
        self._call = call

    async def issue(self, repository: str, number: str) -> TrackedIssue:
        """Return an issue; one that is gone is refused, with the way in which it is."""
        answer = await _ask(self._call(_issue_path(repository, number)))
        return _issue(repository, number, value_of(answer, writing=False))

    async def find(self, repository: str, number: str) -> TrackedIssue | IssueNotFound:
        """Return an issue, or that it is gone."""
        try:
            return await self.issue(repository, number)
        except TrackerRefused as error:
            if error.code in GONE.values():
                return IssueNotFound(repository=repository, number=number)
            raise

    async def inventory(self, repository: str) -> tuple[str, ...]:
        path = f"{_repository_path(repository)}/labels"
        return tuple(sorted(_names(await self._pages(path))))

    async def removed(self, repository: str, number: str) -> set[str]:
        """Return the keys of labels whose last event is that they were taken off."""
        last = {}
        for event in await self._pages(f"{_issue_path(repository, number)}/events"):
            if isinstance(event, dict) and event.get("event") in {"labeled", "unlabeled"}:
                last[label_key(_names([event.get("label")])[0])] = event["event"]
        return {key for key, event in last.items() if event == "unlabeled"}

    async def _pages(self, path: str) -> list[JsonValue]:
        items: list[JsonValue] = []
        for page in range(1, MAX_PAGES + 1):
            answer = await _ask(self._call(f"{path}?per_page={PAGE_SIZE}&page={page}"))
            found = value_of(answer, writing=False)
            if not isinstance(found, list):
                raise TrackerUnavailable("the answer is no list", effect_possible=False)
            items += found
            if 'rel="next"' not in answer.headers.get("link", ""):
                return items
        raise TrackerUnavailable("the list has too many pages", effect_possible=False)


async def _ask(call: Call) -> Answer:
    """Ask once, and raise what it proves unless it is a success."""
    writing = bool(call.body)
    try:
        answer = await exchange(call)
    except (NotSent, NoAnswer) as error:
        raise problem_without(error, writing=writing) from None
    problem = problem_of(answer, writing=writing)
    if problem is not None:
        raise problem
    return answer


def _repository_path(repository: str) -> str:
    owner, _, name = repository.rpartition("/")
    return f"/repos/{_quoted(owner) or NO_OWNER}/{_quoted(name)}"


def _issue_path(repository: str, number: str) -> str:
    return f"{_repository_path(repository)}/issues/{_quoted(number)}"


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def _issue(repository: str, number: str, value: JsonValue) -> TrackedIssue:
    try:
        found: Any = value
        title, body, state = found["title"], found["body"], found["state"]
        locked: bool = found["locked"]
        return TrackedIssue(
            repository=repository,
            number=number,
            title=title,
            body=body,
            state=state,
            locked=locked,
            labels=tuple(_names(found["labels"])),
            author=found["user"]["login"],
            content_digest=content_digest(title, body, state, locked=locked),
        )
    except (KeyError, TypeError):
        raise TrackerUnavailable("the answer is no issue", effect_possible=False) from None


def _names(labels: JsonValue, *, writing: bool = False) -> list[str]:
    found: Any = labels
    try:
        return [label["name"] for label in found]
    except (KeyError, TypeError):
        raise TrackerUnavailable("the answer names no labels", effect_possible=writing) from None


def _presence(key: str, on: set[str], removed: set[str]) -> LabelPresence:
    if key in on:
        return LabelPresence.PRESENT
    return LabelPresence.REMOVED_BY_PERSON if key in removed else LabelPresence.ABSENT


def _result(name: str, presence: LabelPresence) -> LabelResult:
    match presence:
        case LabelPresence.PRESENT:
            return LabelResult(label=name, status=LabelStatus.ALREADY_PRESENT)
        case LabelPresence.ABSENT:
            return LabelResult(label=name, status=LabelStatus.ADDED)
        case LabelPresence.REMOVED_BY_PERSON:
            refusal = LabelRefusal.REMOVED_BY_PERSON
            return LabelResult(label=name, status=LabelStatus.REFUSED, refusal=refusal)


def _unknown(name: str, known: dict[str, str]) -> LabelResult:
    found = known.get(label_key(name))
    refusal = LabelRefusal.NOT_ATTEMPTED if found else LabelRefusal.UNKNOWN_LABEL
    return LabelResult(label=found or name, status=LabelStatus.REFUSED, refusal=refusal)
