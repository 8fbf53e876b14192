"""Takes a label off an issue on GitHub that a write of ours put there, for an undo.

Why it exists: it is the one thing that removes anything, so it is apart from the write. It takes
off one label, by a request that names it, and only one that is still ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from triage.trackers.base import TrackerRefused, label_key
from triage.trackers.github_auth import Credentials
from triage.trackers.github_models import Event, User, read
from triage.trackers.github_names import Place, is_label_name
from triage.trackers.github_reads import (
    ISSUE,
    LABELED,
    Reads,
    is_by_app,
    last_changes,
    reading,
    talking,
)
from triage.trackers.github_wire import Conversation, Wire, nothing_sent_yet

_LABEL: Final = ISSUE + "/labels/{label}"


class Removal(StrEnum):
    """What became of the label."""

    REMOVED = "removed"
    NOT_THERE = "not_there"
    NOT_OURS = "not_ours"
    """Somebody else put it on, before that write or again since."""


@dataclass(frozen=True, kw_only=True)
class OwnLabel:
    """A label that a write of ours put on an issue.

    Attributes:
        place: the issue.
        label: its name.
        since: when that write was sent, less what the clocks may differ by.
    """

    place: Place
    label: str
    since: datetime


async def remove_own_label(
    wire: Wire, rights: Credentials, app_id: str | None, own: OwnLabel, headers: Mapping[str, str]
) -> Removal:
    """Take off a label if the last thing that happened to it is that we put it on.

    Raises:
        TrackerError: its kind says what is known of the effect.
    """
    writes, send_by = rights.required_writes(), wire.send_by()
    async with nothing_sent_yet():
        async with reading(wire, rights.reads, own.place, app_id) as reads:
            spelt, last = await _look(reads, own)
        if spelt is None or not is_label_name(spelt):
            return Removal.NOT_THERE
        async with talking(wire, writes, own.place) as talk:
            if last is None or last.created_at < own.since or not await _ours(talk, last, app_id):
                return Removal.NOT_OURS
    async with talking(wire, writes, own.place) as talk:
        return await _remove(talk, own.place, spelt, headers, send_by)


async def _look(reads: Reads, own: OwnLabel) -> tuple[str | None, Event | None]:
    """Return how the issue spells the label, if it has it, and what happened last to it."""
    key = label_key(own.label)
    names = (await reads.issue(own.place)).label_names
    spelt = next((name for name in names if label_key(name) == key), None)
    if spelt is None:
        return None, None
    return spelt, last_changes(await reads.events(own.place)).get(key)


async def _ours(talk: Conversation, event: Event, app_id: str | None) -> bool:
    """Whether our App put it on, or the account whose token writes."""
    if event.event != LABELED:
        return False
    if app_id is not None:
        return is_by_app(event, app_id)
    me = read(User, (await talk.get("/user", {})).value, writing=False)
    return event.actor is not None and event.actor.login.lower() == me.login.lower()


async def _remove(
    talk: Conversation, place: Place, label: str, headers: Mapping[str, str], send_by: float
) -> Removal:
    names = {**place.variables, "label": label}
    try:
        await talk.send("DELETE", _LABEL, names, about="issue", headers=headers, send_by=send_by)
    except TrackerRefused as error:
        # The issue was there a moment ago: somebody took the label off since.
        if error.code == "issue_not_found":
            return Removal.NOT_THERE
        raise
    return Removal.REMOVED
