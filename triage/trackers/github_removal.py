"""Takes a label off an issue on GitHub that a write of ours put there, for an undo.

Why it exists: it is the one thing that removes anything, so it is apart from the write. It takes
off one label, by a request that names it, and only one that is still ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from triage.trackers.abilities import LabelEvent, OwnWrite, Removal
from triage.trackers.base import TrackerRefused, label_key
from triage.trackers.github_auth import Credentials
from triage.trackers.github_models import Event, User, read
from triage.trackers.github_names import Place, is_label_name
from triage.trackers.github_reads import (
    ISSUE,
    LABELED,
    Reads,
    is_by_app,
    label_changes,
    last_changes,
    reading,
    talking,
)
from triage.trackers.github_wire import Conversation, Wire, nothing_sent_yet

_LABEL: Final = ISSUE + "/labels/{label}"


@dataclass(frozen=True, kw_only=True)
class OwnLabel:
    """A label that a write of ours put on an issue.

    Attributes:
        place: the issue.
        label: its name.
        write: that write.
    """

    place: Place
    label: str
    write: OwnWrite


async def remove_own_label(
    wire: Wire, rights: Credentials, app_id: str | None, own: OwnLabel, headers: Mapping[str, str]
) -> Removal:
    """Take off a label if the last thing that happened to it is that we put it on.

    Raises:
        TrackerError: its kind says what is known of the effect.
    """
    writes, send_by = rights.required_writes(), wire.send_by()
    async with nothing_sent_yet():
        async with reading(wire, rights.reads, own.place) as reads:
            spelt, last = await _look(reads, own)
        if spelt is None or not is_label_name(spelt):
            return Removal.NOT_THERE
        async with talking(wire, writes, own.place) as talk:
            if last is None or not await _did(talk, own, last, app_id):
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


async def _did(talk: Conversation, own: OwnLabel, last: Event, app_id: str | None) -> bool:
    """Whether the write is what happened last; who we are is asked only if it may be."""
    if not own.write.did(_to_event(own.label, last, ours=True)):
        return False
    return is_ours(last, app_id, await login_of(talk, app_id))


async def events_of(
    talk: Conversation, app_id: str | None, events: list[Event]
) -> tuple[LabelEvent, ...]:
    """Return what happened to labels, and whether it was us."""
    me = await login_of(talk, app_id)
    changes = label_changes(events)
    return tuple(_to_event(name, x, ours=is_ours(x, app_id, me)) for name, x in changes)


def is_ours(event: Event, app_id: str | None, me: str) -> bool:
    """Whether our App did it, or the account of this login."""
    if app_id is not None:
        return is_by_app(event, app_id)
    return event.actor is not None and event.actor.login.lower() == me.lower()


async def login_of(talk: Conversation, app_id: str | None) -> str:
    """Return the login of the account whose token this is; an App is told by its id."""
    if app_id is not None:
        return ""
    return read(User, (await talk.get("/user", {})).value, writing=False).login


def _to_event(name: str, event: Event, *, ours: bool) -> LabelEvent:
    added = event.event == LABELED
    return LabelEvent(label=name, added=added, ours=ours, at=event.created_at)


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
