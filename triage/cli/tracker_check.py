"""Checks the trackers: can they be reached, who are we there, and what may we do?"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from triage.cli.findings import Finding, Level
from triage.logs import escape
from triage.settings import Role, Settings

if TYPE_CHECKING:
    from triage.trackers.github_identity import Identity

NAME: Final = "tracker"
RIGHTS: Final = "check the token, or the App's id and key; 'docs/github.md' says what they need"
REACH: Final = "check TRIAGE_GITHUB_BASE_URL and the way there"


async def check(settings: Settings) -> list[Finding]:
    """Return what there is to say about each tracker that is set up; never a token."""
    # Everything of the store's and all that speaks HTTP is slow to load.
    from triage.trackers.factory import is_set_up, missing  # noqa: PLC0415 - see above

    found = []
    if problem := missing(settings):
        found.append(Finding(NAME, Level.FAIL, problem, "without it no worker starts"))
    elif settings.tracker == "local":
        found.append(Finding(NAME, Level.OK, "local, in the database"))
    elif settings.tracker != "github":
        found.append(
            Finding(NAME, Level.OK, f"{settings.tracker}, of an extension; it is not asked")
        )
    if is_set_up("github", settings):
        found += await _github(settings)
    return found


async def _github(settings: Settings) -> list[Finding]:
    from triage.trackers.github_identity import (  # noqa: PLC0415 - slow to load
        identify_app,
        identify_token,
    )
    from triage.trackers.github_setup import (  # noqa: PLC0415 - likewise
        app_of,
        problems,
        reading_token,
        wire_of,
    )

    if wrong := [*problems(settings)]:
        advice = "without it a worker does not start"
        return [Finding(NAME, Level.FAIL, problem, advice) for problem in wrong]
    wire, app, reads = wire_of(settings), app_of(settings), reading_token(settings)
    writes = settings.github_write_token if Role.WRITE in settings.roles else None
    found = []
    if reads is not None:
        found.append(await _asked("reads", settings, identify_token(wire, reads)))
    if writes is not None and writes != reads:
        found.append(await _asked("writes", settings, identify_token(wire, writes)))
    if app is not None and (reads is None or writes is None):
        found.append(await _asked("acts", settings, identify_app(wire, app)))
    return found


async def _asked(use: str, settings: Settings, asking: Awaitable[Identity]) -> Finding:
    from triage.trackers.base import TrackerError, TrackerRefused  # noqa: PLC0415 - likewise

    place = f"github at {settings.github_base_url}"
    try:
        return Finding(NAME, Level.OK, f"{place}: {use} {_told(await asking)}")
    except TrackerRefused as error:
        return Finding(NAME, Level.FAIL, f"{place}: {error} ({error.code})", RIGHTS)
    except TrackerError as error:
        return Finding(NAME, Level.FAIL, f"{place}: {error}", REACH, is_service=True)


def _told(who: Identity) -> str:
    parts = [f"as {escape(who.name)}" if who.name else "as an installation of an App"]
    if who.permissions is None:
        parts.append("GitHub does not say with which permissions")
    else:
        parts.append(f"with {escape(', '.join(who.permissions)) or 'no permission'}")
    if who.remaining is not None and who.limit is not None:
        parts.append(f"{who.remaining:,} of {who.limit:,} requests left")
    if who.installations is not None:
        parts.append(f"installed on {who.installations}")
    return ", ".join(parts)
