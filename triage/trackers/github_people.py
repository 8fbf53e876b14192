"""Who somebody is on GitHub, and what they may do in a repository.

Why it exists: a comment's own word on its author (``author_association``) says nothing of rights
and is wrong for private members. So GitHub is asked, by login, and the stable id that it answers
shows whether the login still belongs to the same person.
"""

from __future__ import annotations

import re
from typing import Final

from triage.trackers.base import TrackerRefused
from triage.trackers.github_models import Permission, read
from triage.trackers.github_names import Place
from triage.trackers.github_reads import REPOSITORY
from triage.trackers.github_removal import login_of
from triage.trackers.github_wire import Conversation
from triage.trackers.people import Person, Right

PERMISSION: Final = REPOSITORY + "/collaborators/{username}/permission"
HUMAN: Final = "User"
_LOGIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_KNOWN: Final = {right.value: right for right in Right}
_NOBODY: Final = frozenset({"repository_not_found"})


async def fetch_person(talk: Conversation, place: Place, login: str) -> Person | None:
    """Return who has `login` and what they may do; None if nobody has, or nobody that may.

    Raises:
        TrackerError: it cannot be said.
    """
    if not _LOGIN.fullmatch(login):
        return None
    try:
        reply = await talk.get(PERMISSION, {**place.variables, "username": login})
    except TrackerRefused as error:
        if error.code in _NOBODY:
            return None
        raise
    found = read(Permission, reply.value, writing=False)
    if found.user is None:
        return None
    is_human = found.user.type == HUMAN
    user = found.user
    return Person(id=str(user.id), login=user.login, is_human=is_human, right=right_of(found))


async def own_login(talk: Conversation, app_id: str | None) -> str:
    """Return the account that a token belongs to, in small letters; empty if it is no person's.

    Raises:
        TrackerError: it cannot be said.
    """
    try:
        return (await login_of(talk, app_id)).lower()
    except TrackerRefused as error:
        # A token of an installation has no account.
        if error.code == "forbidden":
            return ""
        raise


def right_of(found: Permission) -> Right:
    """Return the right that GitHub names; of a role of an organisation's own, what it contains."""
    by_role = _KNOWN.get(found.role_name)
    return by_role or _KNOWN.get(found.permission, Right.NONE)
