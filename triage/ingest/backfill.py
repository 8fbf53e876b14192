"""Tries the rules and the model on issues that are there already, and writes nothing to them.

Why it exists: before anybody lets runs propose labels, they want to see what would have been
proposed, beside what people decided. So real runs are carried, in a mode without effects, a few at
a time, and what came of each is kept: a backfill that is ended goes on where it stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import JsonValue
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from triage.contracts import names
from triage.contracts.options import DEFAULT_TENANT, IssueContext, Mode
from triage.contracts.request import parse_request
from triage.contracts.response import Status, TriageResponse
from triage.contracts.state import StateView
from triage.ingest.rounds import rounds, running
from triage.storage.admission import Subject
from triage.storage.backfills import LEASE, Backfills, labels_we_wrote
from triage.storage.engine import Store
from triage.storage.errors import StorageError
from triage.trackers.base import TrackerError, TrackerUnavailable, label_key
from triage.trackers.listing import Listed, ListedIssue, ListsIssues
from triage.web.requests import request_of

NEWEST_FIRST: Final = Listed(by="created", oldest_first=False, only_open=False)
PREFIX: Final = "backfill-"
MAX_PAGES: Final = 10_000
"""A million issues and pull requests: a list that goes on after them has no end."""
STALE_PAGES: Final = 10
"""In a row and with known issues alone: what is opened meanwhile moves few to the next page."""
HOLDS_A_LEASE: Final = 4
"""So often it is said within a lease that a backfill is carried."""
UNUSABLE: Final = "unusable"
PLATFORM: Final = "platform"
_MINUTE: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which issues, and how.

    Attributes:
        repository: whose issues.
        since: leaves out those that were opened before.
        until: leaves out those that were opened then or later.
        limit: at most so many, the newest ones.
        mode: of the runs; none has an effect in any mode.
    """

    repository: str
    since: datetime | None
    until: datetime | None
    limit: int
    mode: Mode

    def to_json(self) -> dict[str, JsonValue]:
        """Return it as it is kept."""
        return {
            "repository": self.repository,
            "since": self.since.isoformat() if self.since else None,
            "until": self.until.isoformat() if self.until else None,
            "limit": self.limit,
            "mode": self.mode.value,
        }


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast a backfill may go.

    Attributes:
        parallel: so many runs go on at once.
        per_minute: so many are started in a minute.
        page_pause_seconds: between two pages of the list.
    """

    parallel: int = 4
    per_minute: int = 60
    page_pause_seconds: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A finished backfill: its id, and what came of each issue, by number."""

    backfill_id: str
    results: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Backfill:
    """Carries backfills.

    Attributes:
        client: starts the runs; workers carry them.
        task_queue: where.
        tracker: lists the issues.
        tracker_name: what runs call it.
        store: keeps what came of them.
        pace: how fast.
        told: is called with how many issues are done.
        resumed: is called first where it was begun before and is not done.
    """

    client: Client
    task_queue: str
    tracker: ListsIssues
    tracker_name: str
    store: Store
    pace: Pace
    told: Callable[[int], None]
    resumed: Callable[[], None] = lambda: None

    async def run(self, wanted: Wanted) -> Outcome:
        """Try every issue that is wanted and was not tried yet.

        Raises:
            TrackerError: the issues cannot be listed; what was tried is kept.
            RPCError: the server does not answer; likewise.
            BackfillHeldError: another process carries one of the same repository.
            StorageError: the database does not answer; what was tried is kept.
        """
        kept = Backfills(self.store)
        backfill_id, is_begun = await kept.begin(wanted.to_json())
        async with _held(kept, backfill_id):
            if is_begun:
                self.resumed()
            done = await kept.results(backfill_id)
            self.told(len(done))
            await self._try_all(backfill_id, wanted, set(done))
            await kept.finish(backfill_id)
        return Outcome(backfill_id=backfill_id, results=await kept.results(backfill_id))

    async def _try_all(self, backfill_id: str, wanted: Wanted, done: set[str]) -> None:
        """Try the issues that are left, so many at once and so many a minute."""
        found = await self.tracker.repository(wanted.repository)
        ours = await labels_we_wrote(self.store, wanted.repository)
        places = asyncio.Semaphore(self.pace.parallel)

        async def one(issue: ListedIssue) -> None:
            try:
                people = _without(issue.labels, ours.get(issue.number, set()))
                kept = {**await self._try(backfill_id, wanted, found.id, issue), "people": people}
                await Backfills(self.store).record(backfill_id, issue.number, kept)
                done.add(issue.number)
                self.told(len(done))
            finally:
                places.release()

        problem: TrackerError | None = None
        async with asyncio.TaskGroup() as group:
            try:
                async for issue in self._issues(wanted):
                    if issue.number not in done:
                        await places.acquire()
                        group.create_task(one(issue))
                        await asyncio.sleep(_MINUTE / self.pace.per_minute)
            except TrackerError as error:
                # What was begun is waited for and kept.
                problem = error
        if problem is not None:
            raise problem

    async def _issues(self, wanted: Wanted) -> AsyncIterator[ListedIssue]:
        """Yield the issues that are wanted, each once, newest first."""
        seen: set[str] = set()
        async for issues in self._pages(wanted.repository):
            for issue in issues:
                if wanted.since is not None and issue.created_at < wanted.since:
                    return
                if issue.number in seen or _is_too_new(issue, wanted):
                    continue
                seen.add(issue.number)
                yield issue
                if len(seen) >= wanted.limit:
                    return

    async def _pages(self, repository: str) -> AsyncIterator[tuple[ListedIssue, ...]]:
        """Yield one page after the other; some hold pull requests alone, and thus no issue."""
        met, asked, stale = set[str](), set[frozenset[tuple[str, str]]](), 0
        following: Mapping[str, str] | None = None
        for _ in range(MAX_PAGES):
            page = await self.tracker.issue_page(repository, NEWEST_FIRST, following)
            numbers = {issue.number for issue in page.issues}
            stale = stale + 1 if numbers and numbers <= met else 0
            met |= numbers
            yield page.issues
            following = page.following
            if following is None:
                return
            if stale >= STALE_PAGES or frozenset(following.items()) in asked:
                raise TrackerUnavailable("the pages lead in a circle", effect_possible=False)
            asked.add(frozenset(following.items()))
            await asyncio.sleep(self.pace.page_pause_seconds)
        raise TrackerUnavailable("the list has too many pages", effect_possible=False)

    async def _try(
        self, backfill_id: str, wanted: Wanted, repository_id: str, issue: ListedIssue
    ) -> dict[str, JsonValue]:
        subject = Subject(
            tenant=DEFAULT_TENANT,
            source=self.tracker_name,
            repository=wanted.repository,
            repository_id=repository_id,
            number=issue.number,
        )
        request = request_of(issue.title, issue.body, subject)
        try:
            parse_request(request)
        except ValueError:
            return _nothing(UNUSABLE)
        context = IssueContext(
            tracker=self.tracker_name,
            repository=wanted.repository,
            issue=issue.number,
            author=issue.author or None,
        )
        options: dict[str, JsonValue] = {
            "mode": wanted.mode.value,
            "permitted_effects": [],
            "approval_window_seconds": 0,
            "context": context.model_dump(exclude_none=True),
        }
        handle = await self._begin(f"{PREFIX}{backfill_id}-{subject.key}", request, options)
        return await _result(handle)

    async def _begin(
        self, workflow_id: str, request: JsonValue, options: JsonValue
    ) -> WorkflowHandle[Any, TriageResponse]:
        """Start a run, or find the one that was started before this process was ended."""
        try:
            return await self.client.start_workflow(
                names.ISSUE_TRIAGE,
                args=[request, options],
                id=workflow_id,
                task_queue=self.task_queue,
                result_type=TriageResponse,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            )
        except WorkflowAlreadyStartedError:
            return self.client.get_workflow_handle(workflow_id, result_type=TriageResponse)


@asynccontextmanager
async def _held(kept: Backfills, backfill_id: str) -> AsyncIterator[None]:
    """Say while the body runs that it is carried, and let go of it however that ends."""

    async def hold() -> None:
        await kept.hold(backfill_id)

    saying = rounds(hold, "backfill", LEASE.total_seconds() / HOLDS_A_LEASE, asyncio.Event())
    try:
        async with running(saying):
            yield
    finally:
        with suppress(StorageError):
            await kept.let_go(backfill_id)


async def _result(handle: WorkflowHandle[Any, TriageResponse]) -> dict[str, JsonValue]:
    try:
        response = await handle.result()
    except WorkflowFailureError:
        return _nothing(PLATFORM)
    state = await _state(handle)
    failure = response.failure.value if response.failure else None
    return {
        "status": response.status.value,
        "route": response.route,
        "labels": list(response.labels),
        "failure": failure,
        "policy": state.provenance.policy if state else "",
        "tokens": state.spent.tokens if state else 0,
        "cost_micros": state.spent.cost_micros if state else 0,
    }


async def _state(handle: WorkflowHandle[Any, TriageResponse]) -> StateView | None:
    """Return what a run spent; without a worker that tells it, nothing is known."""
    try:
        state: StateView = await handle.query(names.QUERY_STATE, result_type=StateView)
    except RPCError:
        return None
    return state


def _nothing(failure: str) -> dict[str, JsonValue]:
    return {
        "status": Status.FAILED.value,
        "route": None,
        "labels": [],
        "failure": failure,
        "policy": "",
        "tokens": 0,
        "cost_micros": 0,
    }


def _is_too_new(issue: ListedIssue, wanted: Wanted) -> bool:
    return wanted.until is not None and issue.created_at >= wanted.until


def _without(labels: tuple[str, ...], ours: set[str]) -> list[JsonValue]:
    """Return the labels that people put on: those that no operation of ours did."""
    keys = set(map(label_key, ours))
    return [label for label in labels if label_key(label) not in keys]
