"""The request that an issue of the tracker becomes, for who types its name.

Why it exists: a maintainer with a repository and a token writes no JSON to see a first suggestion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import JsonValue

from triage.cli.errors import RefusedError
from triage.cli.orders import Order
from triage.cli.references import named
from triage.cli.stores import open_store
from triage.contracts.options import DEFAULT_TENANT
from triage.settings import load_settings
from triage.storage.admission import Subject
from triage.storage.under_way import UnderWay, under_way
from triage.trackers.base import TrackedIssue, Tracker
from triage.trackers.factory import open_trackers
from triage.trackers.listing import ListedRepository, ListsIssues
from triage.web.requests import NO_BODY, NO_TITLE, SOURCE


@dataclass(frozen=True, slots=True)
class Named:
    """An issue that was named.

    Attributes:
        request: what it becomes.
        where: the options that say where it is.
        under_way: the run that its deliveries have.
    """

    request: JsonValue
    where: dict[str, JsonValue]
    under_way: UnderWay


async def read(order: Order) -> Named:
    """Return what is known of the named issue.

    Raises:
        InputError: this is not how an issue is named.
        RefusedError: the tracker has no such issue.
        TrackerError: it cannot be asked.
    """
    repository, number = named(str(order.request))
    settings = load_settings()
    async with open_store(create=False) as store:
        tracker: Tracker = open_trackers(settings, store)[settings.tracker]
        issue = await tracker.get_issue(repository, number)
        if not isinstance(issue, TrackedIssue):
            raise RefusedError(f"the tracker {settings.tracker} has no issue {repository}#{number}")
        found = await _repository(tracker, repository)
        issue = replace(issue, repository=found.name)
        going = await under_way(store, _subject(found, number))
    where: dict[str, JsonValue] = {"context": _context(settings.tracker, issue)}
    return Named(_request(settings.tracker, issue), where, going)


async def _repository(tracker: Tracker, repository: str) -> ListedRepository:
    """Return a repository as the tracker has it: in other letters it is the same one."""
    if not isinstance(tracker, ListsIssues):
        return ListedRepository(id="", name=repository)
    return await tracker.repository(repository)


def _subject(repository: ListedRepository, number: str) -> Subject:
    """Return the issue as a delivery would name it."""
    return Subject(
        tenant=DEFAULT_TENANT,
        source=SOURCE,
        repository=repository.name,
        repository_id=repository.id,
        number=number,
    )


def _request(tracker: str, issue: TrackedIssue) -> dict[str, JsonValue]:
    return {
        "request_id": f"{issue.repository}-{issue.number}".replace("/", "-"),
        "title": issue.title if issue.title.strip() else NO_TITLE,
        "body": issue.body if issue.body.strip() else NO_BODY,
        "changed_paths": [],
        "source": tracker,
    }


def _context(tracker: str, issue: TrackedIssue) -> dict[str, JsonValue]:
    context: dict[str, JsonValue] = {
        "tracker": tracker,
        "repository": issue.repository,
        "issue": issue.number,
    }
    return {**context, "author": issue.author} if issue.author else context
