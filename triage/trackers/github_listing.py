"""A page of a repository's issues on GitHub, whose list has pull requests among them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from triage.addresses import next_page
from triage.trackers.base import TrackerUnavailable
from triage.trackers.github_models import (
    LISTED,
    ListedItem,
    RepositoryItem,
    read,
    read_list,
)
from triage.trackers.github_names import Place
from triage.trackers.github_reads import PAGE_SIZE, REPOSITORY
from triage.trackers.github_wire import Conversation
from triage.trackers.listing import IssuePage, Listed, ListedIssue, ListedRepository

_LIST: Final = REPOSITORY + "/issues{?per_page,page,after,before,sort,direction,state,since}"


async def fetch_repository(talk: Conversation, place: Place) -> ListedRepository:
    """Return a repository.

    Raises:
        TrackerError: it is not there, or nobody can say.
    """
    reply = await talk.get(REPOSITORY, place.variables)
    found = read(RepositoryItem, reply.value, writing=False)
    return ListedRepository(id=str(found.id), name=found.full_name)


async def fetch_page(
    talk: Conversation, place: Place, listed: Listed, page: Mapping[str, str] | None
) -> IssuePage:
    """Return one page.

    Raises:
        TrackerError: it cannot be read.
    """
    query = {**_query(listed), **(page or {})}
    reply = await talk.get(_LIST, place.variables, query=query)
    found = read_list(LISTED, reply.value, writing=False)
    return IssuePage(
        issues=tuple(_issue(item) for item in found if item.pull_request is None),
        seen_to=max((item.updated_at for item in found), default=None),
        following=_following(talk, reply.next_link),
    )


def _query(listed: Listed) -> dict[str, str]:
    asked = {
        "per_page": str(PAGE_SIZE),
        "sort": listed.by,
        "direction": "asc" if listed.oldest_first else "desc",
        "state": "open" if listed.only_open else "all",
    }
    if listed.since is not None:
        asked["since"] = as_github_time(listed.since)
    return asked


def _following(talk: Conversation, link: str | None) -> Mapping[str, str] | None:
    if link is None:
        return None
    try:
        return next_page(talk.wire.address, link)
    except ValueError as error:
        raise TrackerUnavailable(str(error), effect_possible=False) from None


def _issue(item: ListedItem) -> ListedIssue:
    return ListedIssue(
        number=str(item.number),
        title=item.title,
        body=item.body or "",
        state=item.state,
        author=item.user.login if item.user else "",
        labels=item.label_names,
        created_at=item.created_at,
        updated_at=item.updated_at,
    )


def as_github_time(moment: datetime) -> str:
    """Return a moment as GitHub writes it: whole seconds, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
