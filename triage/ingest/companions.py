"""What `triage serve` runs beside its answers: the parts that ask the tracker and sign for people.

Why it exists: what strangers reach over the network loads no tracker and no key. Those are opened
here, by whoever starts the process, and speak with the rest through the database alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Final

from triage.ingest.answers import Answering
from triage.ingest.polling import Polling
from triage.ingest.rounds import rounds, running
from triage.settings import Settings, SettingsError
from triage.signing.files import KeyringFile, read_key
from triage.signing.keys import KeyFileError, KeyringError, SigningKey
from triage.storage.admission import Admission
from triage.storage.approvals import Approvals
from triage.storage.commands import Commands
from triage.storage.documents import DocumentStore
from triage.storage.engine import Store
from triage.trackers.factory import open_trackers
from triage.trackers.listing import ListsIssues
from triage.trackers.people import KnowsPeople
from triage.web.requests import SOURCE
from triage.web.serving import House

ANSWER_PERIOD_SECONDS: Final = 5.0
"""Between two looks for answers that another process left."""
POLL_PERIOD_SECONDS: Final = 300.0
"""Between two looks through the repositories: a hundred a day of the 5,000 requests an hour."""
KNOWING_NOBODY: Final = frozenset({"local"})
"""Trackers that cannot say who may do what; an extension's is looked at when it is made."""


def service_key(settings: Settings) -> SigningKey | None:
    """Return the key that vouches for people, if one is set.

    Raises:
        SettingsError: the tracker knows no people, the key cannot be used, or the keyring that is
            set does not let it vouch.
    """
    if settings.service_key is None:
        return None
    if settings.tracker in KNOWING_NOBODY:
        raise _without_people(settings)
    try:
        key = read_key(settings.service_key)
    except KeyFileError as error:
        raise SettingsError(f"TRIAGE_SERVICE_KEY: {error}") from None
    if settings.keyring is not None:
        _check_ring(settings, key)
    return key


def vouching(settings: Settings, tracker: object) -> tuple[KnowsPeople, SigningKey] | None:
    """Return the tracker that knows people and the key that signs for them, if one is set.

    Raises:
        SettingsError: as `service_key`; the tracker itself is looked at, too.
    """
    if settings.service_key is not None and not isinstance(tracker, KnowsPeople):
        raise _without_people(settings)
    key = service_key(settings)
    return (tracker, key) if isinstance(tracker, KnowsPeople) and key else None


def _without_people(settings: Settings) -> SettingsError:
    return SettingsError(
        f"TRIAGE_SERVICE_KEY: the tracker {settings.tracker} cannot say who may do what;"
        " set TRIAGE_TRACKER to github"
    )


def _check_ring(settings: Settings, key: SigningKey) -> None:
    try:
        entry = KeyringFile(settings.keyring).load().find(key.kid)
    except KeyringError as error:
        raise SettingsError(f"TRIAGE_KEYRING: {error}") from None
    if entry is None or settings.tracker not in entry.vouches_for:
        raise SettingsError(
            "TRIAGE_SERVICE_KEY: the keyring does not let this key vouch for people of the tracker"
            f" {settings.tracker}; make one with 'triage keys new NAME --vouches-for"
            f" {settings.tracker}'"
        )


@asynccontextmanager
async def companions(settings: Settings, house: House) -> AsyncIterator[None]:
    """Run what the settings ask for beside what serves.

    Raises:
        SettingsError: they do not suffice.
    """
    tracker = open_trackers(settings, house.store).get(settings.tracker)
    tasks: list[Awaitable[None]] = []
    if (who := vouching(settings, tracker)) is not None:
        answering = _answering(settings, house, *who)
        period = ANSWER_PERIOD_SECONDS
        tasks.append(rounds(answering.carry_all, "answers", period, house.heard))
    if settings.poll_repositories:
        polling = poller(settings, house.store, house.admission, tracker)

        async def look() -> None:
            if any(
                look.admitted for look in await polling.look_through(settings.poll_repositories)
            ):
                house.starter.wake()

        tasks.append(rounds(look, "polling", POLL_PERIOD_SECONDS, asyncio.Event()))
    async with running(*tasks):
        yield


def poller(settings: Settings, store: Store, admission: Admission, tracker: object) -> Polling:
    """Return what looks through repositories.

    Raises:
        SettingsError: the tracker cannot list issues, or its issues are not GitHub's.
    """
    if settings.tracker != SOURCE or not isinstance(tracker, ListsIssues):
        raise SettingsError(
            f"TRIAGE_POLL_REPOSITORIES: the tracker {settings.tracker} is not looked through;"
            f" set TRIAGE_TRACKER to {SOURCE}"
        )
    return Polling(tracker=tracker, tracker_name=settings.tracker, store=store, admission=admission)


def _answering(
    settings: Settings, house: House, tracker: KnowsPeople, key: SigningKey
) -> Answering:
    return Answering(
        commands=Commands(house.store),
        approvals=Approvals(house.store),
        documents=DocumentStore(house.store),
        connect=house.starter.reached,
        tracker=tracker,
        tracker_name=settings.tracker,
        key=key,
        refusals=Counter(),
    )
