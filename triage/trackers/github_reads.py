"""What is read from GitHub: an issue, the labels of a repository, what happened to an issue.

Why it exists: a list that is taken for whole and is not makes a label look unknown, or a removal
unseen. So lists are read to their end, and one that has none is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from pydantic import TypeAdapter

from triage.addresses import next_page
from triage.trackers.base import (
    TrackedIssue,
    TrackerRefused,
    TrackerUnavailable,
    content_digest,
    label_key,
)
from triage.trackers.github_auth import Credential
from triage.trackers.github_models import EVENTS, LABELS, Event, Issue, read, read_list
from triage.trackers.github_names import Place
from triage.trackers.github_wire import Conversation, Wire, connected
from triage.trackers.inventory import Inventory, RepositoryLabel

MAX_PAGES: Final = 50
PAGE_SIZE: Final = 100
NOT_AN_ISSUE: Final = "not_an_issue"
"""The number is a pull request's."""

REPOSITORY: Final = "/repos/{owner}/{repo}"
ISSUE: Final = REPOSITORY + "/issues/{number}"
_PAGE: Final = "{?per_page,page,after,before}"
LABELED: Final = "labeled"
UNLABELED: Final = "unlabeled"

Item = TypeVar("Item")


class Reads:
    """Reads over one connection; open it with `reading`."""

    def __init__(self, talk: Conversation) -> None:
        self.talk = talk

    async def issue(self, place: Place) -> Issue:
        """Return an issue.

        Raises:
            TrackerRefused: it is gone, in the way that the code says, or is a pull request.
        """
        reply = await self.talk.get(ISSUE, place.variables, about="issue")
        found = read(Issue, reply.value, writing=False)
        if found.pull_request is not None:
            raise TrackerRefused(NOT_AN_ISSUE, "the number is that of a pull request")
        return found

    async def inventory(self, place: Place) -> Inventory:
        """Return all labels of the repository."""
        found = await self.all(REPOSITORY + "/labels", place.variables, LABELS, "repository")
        return Inventory(RepositoryLabel(str(label.id), label.name) for label in found)

    async def events(self, place: Place) -> list[Event]:
        """Return everything that happened to an issue, oldest first."""
        return await self.all(ISSUE + "/events", place.variables, EVENTS, "issue")

    async def removed(self, place: Place) -> set[str]:
        """Return the keys of labels that were taken off last; we do that for people alone."""
        last = last_changes(await self.events(place))
        return {key for key, event in last.items() if event.event == UNLABELED}

    async def all(
        self, template: str, names: Mapping[str, str], items: TypeAdapter[list[Item]], about: str
    ) -> list[Item]:
        """Return a list from its first page to its last.

        Raises:
            TrackerUnavailable: it has too many pages, or they lead in a circle or elsewhere.
        """
        found: list[Item] = []
        query: Mapping[str, str] = {"per_page": str(PAGE_SIZE), "page": "1"}
        seen: set[frozenset[tuple[str, str]]] = set()
        for number in range(1, MAX_PAGES + 1):
            seen.add(frozenset(query.items()))
            reply = await self.talk.get(template + _PAGE, names, about=about, query=query)
            page = read_list(items, reply.value, writing=False)
            found += page
            if reply.next_link is not None:
                query = self._next(reply.next_link)
            elif len(page) < PAGE_SIZE:
                return found
            else:
                # A whole page and no link: it may have been lost on the way.
                query = {"per_page": str(PAGE_SIZE), "page": str(number + 1)}
            if frozenset(query.items()) in seen:
                raise TrackerUnavailable("the pages lead in a circle", effect_possible=False)
        raise TrackerUnavailable("the list has too many pages", effect_possible=False)

    def _next(self, link: str) -> Mapping[str, str]:
        try:
            return next_page(self.talk.wire.address, link)
        except ValueError as error:
            raise TrackerUnavailable(str(error), effect_possible=False) from None


@asynccontextmanager
async def reading(wire: Wire, credential: Credential, place: Place) -> AsyncIterator[Reads]:
    """Hold one connection that reads from a repository."""
    async with talking(wire, credential, place) as talk:
        yield Reads(talk)


@asynccontextmanager
async def talking(wire: Wire, credential: Credential, place: Place) -> AsyncIterator[Conversation]:
    """Hold one connection with the right that `credential` gives to a repository."""
    try:
        async with connected(wire, await credential.secret(place)) as talk:
            yield talk
    except TrackerRefused as error:
        if error.code == "unauthorized":
            credential.forget(place)
        raise


def last_changes(events: list[Event]) -> dict[str, Event]:
    """Return what happened last to each label, by the label's key."""
    return {label_key(name): event for name, event in label_changes(events)}


def label_changes(events: list[Event]) -> Iterator[tuple[str, Event]]:
    """Yield what happened to labels, with the label's name."""
    for event in events:
        if event.label is not None and event.event in {LABELED, UNLABELED}:
            yield event.label.name, event


def is_by_app(event: Event, app_id: str | None) -> bool:
    """Whether GitHub says that our App did it; a token may be a person's own."""
    app = event.performed_via_github_app
    return app_id is not None and app is not None and app.is_called(app_id)


def to_issue(repository: str, number: str, found: Issue) -> TrackedIssue:
    """Return an issue as every tracker gives it; one without a text has an empty one."""
    body = found.body or ""
    return TrackedIssue(
        repository=repository,
        number=number,
        title=found.title,
        body=body,
        state=found.state,
        locked=found.locked,
        labels=found.label_names,
        label_ids=found.label_ids,
        author=found.user.login if found.user else "",
        content_digest=content_digest(found.title, body, found.state, locked=found.locked),
    )
