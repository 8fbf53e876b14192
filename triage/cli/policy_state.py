"""What is written, what was accepted, and which of both is in force; for every command alike."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from triage.cli.errors import InputError
from triage.cli.stores import LOOK_SECONDS
from triage.policy.narrowing import Narrowing, narrowings
from triage.policy.standing import Standing, judge
from triage.policy.tools import BUILTIN_TOOLS
from triage.rules_place import RulesPlace, UnreadableRulesError, Written
from triage.settings import Settings
from triage.storage.acceptances import FIRST_REVISION, NOBODY_YET, Acceptances, AcceptedRules
from triage.storage.address import parse_address
from triage.storage.engine import Store
from triage.storage.schema import REVISIONS
from triage.storage.version import check_schema, schema_revision

WAITS: Final = "waits for acceptance"
LOOKED_AT_WITH: Final = "A worker looks at this file only where it has this setting, too:"
COMMAND: Final = "triage policy accept"


@dataclass(frozen=True, slots=True)
class PolicyState:
    """The rules as a worker with the same settings would find them now.

    Attributes:
        is_looked_at: whether such a worker looks at the written ones at all.
    """

    written: Written
    accepted: AcceptedRules
    standing: Standing
    is_looked_at: bool = True

    @property
    def is_written(self) -> bool:
        """Whether the written rules are in force where a worker looks at them."""
        return not self.standing.waiting

    @property
    def narrows(self) -> tuple[Narrowing, ...]:
        """What the written rules take away of the accepted ones; nobody has to accept that."""
        return narrowings(self.accepted.rules, self.written.rules)


def place_of(settings: Settings, file: Path | None) -> RulesPlace:
    """Return where to look: at the file that was named, else where a worker looks.

    Raises:
        SettingsError: ``TRIAGE_CONFIG`` names a file that does not exist.
    """
    return RulesPlace.of(settings) if file is None else RulesPlace(file)


async def policy_state(settings: Settings, place: RulesPlace) -> PolicyState:
    """Look what is written at a place and what was accepted; nothing is changed by looking.

    Raises:
        InputError: there is no such file, or it cannot be read.
        RulesFileError: the rules cannot be used.
        StorageError: it cannot be said what was accepted.
    """
    written = read_written(place)
    accepted = await accepted_rules(settings)
    standing = judge(written.rules, accepted.rules)
    return PolicyState(written, accepted, standing, is_looked_at(settings, place))


def read_written(place: RulesPlace) -> Written:
    """Return what is written at a place.

    Raises:
        InputError: there is no such file, or it cannot be read.
        RulesFileError: the rules cannot be used.
    """
    try:
        return place.read(BUILTIN_TOOLS)
    except UnreadableRulesError as error:
        [found] = error.findings
        raise InputError(f"{place.path}: {found.message}", found.hint) from None


def needed_setting(settings: Settings, place: RulesPlace) -> str:
    """Return the setting that makes a worker look at this file; empty if these settings do."""
    if place.path is None or is_looked_at(settings, place):
        return ""
    return f"TRIAGE_POLICY={shlex.quote(str(place.path.absolute()))}"


def is_looked_at(settings: Settings, place: RulesPlace) -> bool:
    """Whether a worker with these settings looks for its rules there."""
    return place.path is None or place.path.absolute() == RulesPlace.of(settings).path


async def accepted_rules(settings: Settings) -> AcceptedRules:
    """Return the rules that were accepted last, without making or upgrading a database.

    Raises:
        StorageError: it cannot be said.
    """
    address = parse_address(settings.database_url)
    if address.path is not None and not address.path.exists():
        return NOBODY_YET
    store = await Store.open(settings.database_url, transaction_seconds=LOOK_SECONDS)
    try:
        if await _is_too_old(store):
            return NOBODY_YET
        return await Acceptances(store).current()
    finally:
        await store.close()


async def _is_too_old(store: Store) -> bool:
    """Whether the database is from before acceptances; a newer one than ours is an error."""
    revision = await schema_revision(store)
    if revision is None:
        return True
    if revision in REVISIONS:
        return REVISIONS.index(revision) < REVISIONS.index(FIRST_REVISION)
    await check_schema(store)
    return False
