"""The request that an issue of the tracker becomes, for who types its name.

Why it exists: a maintainer with a repository and a token writes no JSON to see a first suggestion.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import JsonValue

from triage.cli.errors import RefusedError
from triage.cli.orders import Order
from triage.cli.references import named
from triage.cli.stores import open_store
from triage.settings import load_settings
from triage.trackers.base import TrackedIssue, Tracker
from triage.trackers.factory import open_trackers
from triage.trackers.listing import ListsIssues
from triage.web.requests import NO_BODY, NO_TITLE


async def read(order: Order) -> tuple[JsonValue, dict[str, JsonValue]]:
    """Return the request that the named issue becomes, and the options that say where it is.

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
        issue = replace(issue, repository=await _spelling(tracker, repository))
    return _request(settings.tracker, issue), {"context": _context(settings.tracker, issue)}


async def _spelling(tracker: Tracker, repository: str) -> str:
    """Return a repository's name as the tracker has it: in other letters it is the same one."""
    if not isinstance(tracker, ListsIssues):
        return repository
    return (await tracker.repository(repository)).name


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
