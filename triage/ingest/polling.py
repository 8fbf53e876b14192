"""Looks through repositories for issues whose delivery never came.

Why it exists: GitHub sends a delivery once. What was answered with an error, or while nobody was
there, is found by asking for everything that was changed since the last look. What is found is
admitted under the same rules as a delivery, so what came already starts nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from triage.contracts.canonical import digest_of_bytes, short_hash
from triage.contracts.options import DEFAULT_TENANT
from triage.storage.admission import Admission, Delivery, Meaning, Subject
from triage.storage.cursors import Cursor
from triage.storage.engine import Store
from triage.trackers.base import TrackerError, TrackerUnavailable
from triage.trackers.listing import IssuePage, Listed, ListedIssue, ListedRepository, ListsIssues
from triage.web.payload import Account, Issue
from triage.web.requests import SOURCE, UnusableError, content_of

OVERLAP: Final = timedelta(minutes=2)
"""How far a look goes back behind the last one: clocks differ, and a list may lag."""
MAX_PAGES: Final = 10
"""Of one repository in one look; the next one goes on from there."""
MOST_PAGES: Final = 200
"""Of a look that does not get past one moment, since by time no other one can go on inside it."""
CROWDED: Final = "more was changed in one moment than a look can see; what is left is skipped"
PAGE_PAUSE_SECONDS: Final = 1.0
EVENT: Final = "poll"
_log = logging.getLogger(__name__)


@dataclass
class Look:
    """What one look through a repository came to.

    Attributes:
        repository: which one.
        seen: how many issues were looked at, some perhaps twice.
        admitted: how many of them start something.
        is_whole: whether there was nothing left to see.
        problem: why it broke off; empty if it did not.
        retry_after_seconds: how long the tracker asks to be left alone.
    """

    repository: str
    seen: int = 0
    admitted: int = 0
    is_whole: bool = False
    problem: str = ""
    retry_after_seconds: float = 0.0


class _Moment:
    """One moment with more changes than a page holds, so that its pages are read by number.

    What is changed meanwhile leaves it, and others move up to a page that was read already. So it
    is read again until nothing new is met.

    Attributes:
        following: gets the page to read next; None for the first one.
    """

    def __init__(self) -> None:
        self._met: set[str] = set()
        self._is_new = False
        self.following: Mapping[str, str] | None = None

    def is_over(self, page: IssuePage, begin: datetime, *, by_number: bool) -> bool:
        """Take a page in, and tell whether the moment `begin` was seen as a whole."""
        numbers = {issue.number for issue in page.issues}
        self._is_new |= not numbers <= self._met
        self._met |= numbers
        moved = page.seen_to is None or page.seen_to > begin
        if page.following is not None and not moved:
            self.following = page.following
            return False
        if not by_number or not self._is_new:
            return True
        self._is_new, self.following = False, None
        return False


@dataclass(kw_only=True)
class Polling:
    """Looks through repositories.

    Attributes:
        tracker: lists their issues.
        tracker_name: what runs call it.
        store: keeps where a look stopped.
        admission: admits what is found.
        page_pause_seconds: between two requests.
    """

    tracker: ListsIssues
    tracker_name: str
    store: Store
    admission: Admission
    page_pause_seconds: float = PAGE_PAUSE_SECONDS
    _resting: dict[str, float] = field(default_factory=dict)

    async def look_through(self, repositories: tuple[str, ...]) -> list[Look]:
        """Look through each repository that may be asked about now.

        Raises:
            StorageError: the database does not answer; what was admitted stays admitted.
        """
        return [await self.look(name) for name in repositories if not self._rests(name)]

    async def look(self, repository: str, since: datetime | None = None) -> Look:
        """Look through one repository, from where the last look stopped.

        Args:
            repository: its name.
            since: where the very first look begins; else with what is changed from now on.

        Raises:
            StorageError: likewise.
        """
        look = Look(repository)
        try:
            await self._look(look, since)
        except TrackerError as error:
            pause = error.retry_after_seconds if isinstance(error, TrackerUnavailable) else None
            look.problem, look.retry_after_seconds = str(error), pause or 0.0
            self._resting[repository] = asyncio.get_running_loop().time() + (pause or 0.0)
            _log.warning("a look through a repository broke off: %s", error)
        if look.admitted:
            _log.info("found what no delivery brought", extra={"count": look.admitted})
        return look

    def _rests(self, repository: str) -> bool:
        return asyncio.get_running_loop().time() < self._resting.get(repository, 0.0)

    async def _look(self, look: Look, since: datetime | None) -> None:
        cursor = Cursor(
            self.store, tenant=DEFAULT_TENANT, source=SOURCE, repository=look.repository
        )
        # Before anybody is asked: a first look that breaks off has begun all the same.
        first = begin = await cursor.position(since) - OVERLAP
        found = await self.tracker.repository(look.repository)
        following: Mapping[str, str] | None = None
        moment = _Moment()
        for number in range(1, MOST_PAGES + 1):
            listed = Listed(by="updated", oldest_first=True, only_open=True, since=begin)
            page = await self.tracker.issue_page(look.repository, listed, following)
            for issue in page.issues:
                await self._admit(look, found, issue)
            if moment.is_over(page, begin, by_number=following is not None):
                look.is_whole = page.following is None or page.seen_to is None
                await _keep(cursor, page, whole=look.is_whole)
                if look.is_whole or page.seen_to is None:
                    return
                # By time, not by page: what is changed meanwhile moves to the end, and others up.
                following, begin, moment = None, page.seen_to, _Moment()
            else:
                following = moment.following
            if number >= MAX_PAGES and begin > first:
                return
            await asyncio.sleep(self.page_pause_seconds)
        look.problem = CROWDED
        await cursor.advance(begin + timedelta(seconds=1) + OVERLAP)

    async def _admit(self, look: Look, found: ListedRepository, listed: ListedIssue) -> None:
        look.seen += 1
        subject = Subject(
            tenant=DEFAULT_TENANT,
            source=SOURCE,
            repository=found.name,
            repository_id=found.id,
            number=listed.number,
        )
        issue = Issue(
            number=int(listed.number),
            title=listed.title,
            body=listed.body,
            state=listed.state,
            user=Account(login=listed.author) if listed.author else None,
            updated_at=listed.updated_at,
        )
        look.admitted += await self._is_new(issue, subject)

    async def _is_new(self, issue: Issue, subject: Subject) -> bool:
        try:
            content = content_of(issue, subject, self.tracker_name)
        except UnusableError:
            return False
        seen = short_hash(EVENT, subject.key, issue.updated_at.isoformat(), content.digest)
        delivery = Delivery(
            delivery_id=f"{EVENT}-{seen}",
            event=EVENT,
            action="listed",
            body_digest=digest_of_bytes(content.document),
        )
        answer = await self.admission.admit(delivery, subject, content)
        return answer.meaning is Meaning.ACCEPTED and not answer.repeated


async def _keep(cursor: Cursor, page: IssuePage, *, whole: bool) -> None:
    """Keep where the next look begins, less the overlap that it takes off.

    Inside a look that is not whole the overlap would lead back to where it began. So it is put on
    before; as the cursor passes no moment that is yet to come, the next look begins no later than
    the overlap before now all the same.
    """
    if page.seen_to is not None:
        await cursor.advance(page.seen_to if whole else page.seen_to + OVERLAP)
