"""The tracker over GitHub's REST API: see `Tracker` for what each method may be relied on for.

Why it exists: everything that GitHub leaves open is closed here. It creates a label by adding it,
so labels are looked up first and their ids compared afterwards. It shows a pull request as an
issue. And an error of its server is no evidence that nothing was done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from triage.trackers.abilities import FetchedOwners, LabelEvent, OwnWrite, Removal
from triage.trackers.base import (
    GONE_CODES,
    IssueNotFound,
    LabelPresence,
    LabelsAdded,
    TrackedIssue,
    TrackerRefused,
    TrackerUnavailable,
    as_request_id,
)
from triage.trackers.github_auth import Credentials
from triage.trackers.github_codeowners import fetch_owners
from triage.trackers.github_listing import fetch_page, fetch_repository
from triage.trackers.github_models import LABELS, read_list
from triage.trackers.github_names import (
    BAD_TARGET,
    Place,
    issue_place,
    repository_place,
)
from triage.trackers.github_people import fetch_person, own_login
from triage.trackers.github_plan import Plan, keys_on, plan, presence, settled
from triage.trackers.github_reads import ISSUE, NOT_AN_ISSUE, Reads, reading, talking, to_issue
from triage.trackers.github_removal import OwnLabel, events_of, remove_own_label
from triage.trackers.github_wire import Wire, nothing_sent_yet
from triage.trackers.inventory import RepositoryLabel
from triage.trackers.listing import IssuePage, Listed, ListedRepository
from triage.trackers.people import Person

OPERATION_HEADER: Final = "x-operation-key"
"""GitHub ignores it; whoever records requests on the way sees what a write belongs to."""
REQUEST_HEADER: Final = "x-github-request-id"
"""What GitHub calls a request in its own records."""
WRITE_SPACING_SECONDS: Final = 1.0
"""GitHub asks for so much between two requests that change something."""
MAX_TURN_SECONDS: Final = 5.0
KEPT_SECONDS: Final = 60.0

_MISSING: Final = GONE_CODES | {NOT_AN_ISSUE, BAD_TARGET}


class GitHubTracker:
    """Issues on GitHub.

    Args:
        wire: where its API is.
        rights: ours, for each use.
        app_id: our App's id or client id, if we act as one: by it we know our own acts.
        write_spacing_seconds: between two requests of ours that change something.
    """

    def __init__(
        self,
        wire: Wire,
        rights: Credentials,
        *,
        app_id: str | None = None,
        write_spacing_seconds: float = WRITE_SPACING_SECONDS,
    ) -> None:
        self._wire = wire
        self._rights = rights
        self._app_id = app_id
        self._turns = _Turns(write_spacing_seconds)
        self._own: str | None = None

    def seconds_to_turn(self, operation_key: str) -> float | None:
        """See `KeepsTurns`."""
        return self._turns.keep(operation_key)

    async def admit_issue(
        self,
        repository: str,
        number: str,
        *,
        title: str,  # noqa: ARG002 - GitHub's own text counts
        body: str,  # noqa: ARG002 - likewise
        author: str | None,  # noqa: ARG002 - likewise
        labels: Sequence[str],  # noqa: ARG002 - GitHub's own labels count
    ) -> TrackedIssue:
        """Return the issue: this tracker only looks."""
        place = issue_place(repository, number)
        async with self._reading(place) as reads:
            return to_issue(repository, number, await reads.issue(place))

    async def get_issue(self, repository: str, number: str) -> TrackedIssue | IssueNotFound:
        """Return the issue as it is now; a pull request is none."""
        try:
            place = issue_place(repository, number)
            async with self._reading(place) as reads:
                return to_issue(repository, number, await reads.issue(place))
        except TrackerRefused as error:
            return _not_found(error, repository, number)

    async def label_inventory(self, repository: str) -> tuple[str, ...]:
        """Return the labels that exist in a repository, sorted by name."""
        return tuple(sorted(label.name for label in await self.labels_by_id(repository)))

    async def labels_by_id(self, repository: str) -> tuple[RepositoryLabel, ...]:
        """Return the labels of a repository with their ids, which a rename does not change."""
        place = repository_place(repository)
        async with self._reading(place) as reads:
            return (await reads.inventory(place)).labels

    async def label_presence(
        self, repository: str, number: str, labels: Sequence[str]
    ) -> tuple[LabelPresence, ...] | IssueNotFound:
        """Say for each label where it stands on the issue."""
        try:
            place = issue_place(repository, number)
            async with self._reading(place) as reads:
                on, removed = keys_on(await reads.issue(place)), await reads.removed(place)
        except TrackerRefused as error:
            return _not_found(error, repository, number)
        return tuple(presence(name, on, removed) for name in labels)

    async def add_labels(
        self,
        repository: str,
        number: str,
        labels: Sequence[str],
        *,
        by: str,
        operation_key: str,
        pinned: Mapping[str, str] | None = None,
    ) -> LabelsAdded:
        """Add labels, and do nothing else; see `HasLabelIds` for `pinned`.

        Raises:
            TrackerTimeout: the labels may be on the issue, or may be soon.
            TrackerUnavailable: its `effect_possible` says whether they may be.
            TrackerRefused: nothing was done, or perhaps a part (`UNCERTAIN_CODES`).
        """
        place, writes = issue_place(repository, number), self._rights.required_writes()
        send_by = self._wire.send_by()
        async with nothing_sent_yet():
            await self._turns.take(operation_key)
            made = await self._plan(place, labels, pinned or {})
        if not made.wanted:
            return made.outcome
        async with talking(self._wire, writes, place) as talk:
            reply = await talk.send(
                "POST",
                ISSUE + "/labels",
                place.variables,
                about="issue",
                body={"labels": [label.name for label in made.wanted]},
                headers={OPERATION_HEADER: operation_key, "user-agent": by},
                send_by=send_by,
            )
        on = read_list(LABELS, reply.value, writing=True)
        return settled(made, on, as_request_id(reply.headers.get(REQUEST_HEADER)))

    async def label_events(
        self, repository: str, number: str
    ) -> tuple[LabelEvent, ...] | IssueNotFound:
        """Return what happened to the labels of an issue, oldest first; see `CanUndo`."""
        try:
            place = issue_place(repository, number)
            async with self._reading(place) as reads:
                await reads.issue(place)
                events = await reads.events(place)
            # Ours is what the account does that writes.
            who = self._rights.writes or self._rights.reads
            async with talking(self._wire, who, place) as talk:
                return await events_of(talk, self._app_id, events)
        except TrackerRefused as error:
            return _not_found(error, repository, number)

    async def remove_own_label(
        self, repository: str, number: str, label: str, write: OwnWrite, *, operation_key: str
    ) -> Removal:
        """Take off a label that `write` put on, if it is still ours; see `CanUndo`.

        Raises:
            TrackerError: as `add_labels` does.
        """
        own = OwnLabel(place=issue_place(repository, number), label=label, write=write)
        async with nothing_sent_yet():
            await self._turns.take()
        headers = {OPERATION_HEADER: operation_key}
        return await remove_own_label(self._wire, self._rights, self._app_id, own, headers)

    async def codeowners(self, repository: str) -> FetchedOwners:
        """Return the repository's CODEOWNERS file as its default branch has it now.

        Raises:
            TrackerError: whether there is one cannot be said.
        """
        place = repository_place(repository)
        async with talking(self._wire, self._rights.files, place) as talk:
            return await fetch_owners(talk, place)

    async def person(self, repository: str, login: str) -> Person | None:
        """Return who has a login now and what they may do in a repository; None if nobody has.

        Raises:
            TrackerError: it cannot be said.
        """
        place = repository_place(repository)
        async with talking(self._wire, self._rights.reads, place) as talk:
            found = await fetch_person(talk, place, login)
        if found is None or found.login.lower() != await self._own_login(place):
            return found
        return replace(found, is_us=True)

    async def _own_login(self, place: Place) -> str:
        """Return the account that writes, in small letters; empty for an App."""
        who = self._rights.writes or self._rights.reads
        if self._own is None:
            async with talking(self._wire, who, place) as talk:
                self._own = await own_login(talk, self._app_id)
        return self._own

    async def repository(self, repository: str) -> ListedRepository:
        """Return a repository."""
        place = repository_place(repository)
        async with talking(self._wire, self._rights.reads, place) as talk:
            return await fetch_repository(talk, place)

    async def issue_page(
        self, repository: str, listed: Listed, page: Mapping[str, str] | None = None
    ) -> IssuePage:
        """Return a page of a repository's issues."""
        place = repository_place(repository)
        async with talking(self._wire, self._rights.reads, place) as talk:
            return await fetch_page(talk, place, listed, page)

    async def _plan(self, place: Place, labels: Sequence[str], pinned: Mapping[str, str]) -> Plan:
        async with self._reading(place) as reads:
            issue = await reads.issue(place)
            inventory = await reads.inventory(place)
            return plan(issue, inventory, await reads.removed(place), labels, pinned)

    @asynccontextmanager
    async def _reading(self, place: Place) -> AsyncIterator[Reads]:
        async with reading(self._wire, self._rights.reads, place) as reads:
            yield reads


class _Turns:
    """Keeps requests that change something apart."""

    def __init__(self, spacing_seconds: float) -> None:
        self._spacing_seconds = spacing_seconds
        self._next = 0.0
        self._kept: dict[str, float] = {}

    def keep(self, operation_key: str) -> float | None:
        """See `KeepsTurns`."""
        now = _now()
        # A write that was given up after all leaves its turn unused.
        self._kept = {key: at for key, at in self._kept.items() if at > now - KEPT_SECONDS}
        at = self._kept.get(operation_key)
        if at is None:
            at = max(now, self._next)
            if at - now > MAX_TURN_SECONDS:
                return None
            self._kept[operation_key], self._next = at, at + self._spacing_seconds
        return max(0.0, at - now)

    async def take(self, operation_key: str = "") -> None:
        """Wait for the turn that was kept, or for the next one."""
        wait = self.keep(operation_key)
        if wait is None:
            message, pause = "too many writes wait for their turn", self._next - _now()
            raise TrackerUnavailable(message, effect_possible=False, retry_after_seconds=pause)
        self._kept.pop(operation_key, None)
        if wait > 0:
            await asyncio.sleep(wait)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _not_found(error: TrackerRefused, repository: str, number: str) -> IssueNotFound:
    if error.code not in _MISSING:
        raise error
    return IssueNotFound(repository=repository, number=number, code=error.code)
