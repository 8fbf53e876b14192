"""Which rules a person accepted, so that every worker is held to the same ones.

Why it exists: a file in a repository can be changed by whoever may write there. Rules that allow
more than before count only once a person with access to this store has accepted exactly them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import ValidationError
from sqlalchemy import select

from triage.policy.rules import BUILTIN_RULES, Rules
from triage.policy.widening import Widening
from triage.storage.audit import AuditEntry, append
from triage.storage.connections import AsyncConnection
from triage.storage.documents import SHARED, Document, DocumentKind, DocumentStore, keep
from triage.storage.engine import Store
from triage.storage.errors import StorageError, StorageMisconfigured
from triage.storage.rows import first_row, insert_first
from triage.storage.schema import acceptances
from triage.storage.switches import EVERYBODY

FIRST_REVISION: Final = "0003"
"""The schema that has acceptances; in an older one none were made."""


_NEWEST: Final = select(acceptances).order_by(acceptances.c.seq.desc()).limit(1)
"""Built once: every run begins by asking it."""


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """That somebody accepted rules.

    Attributes:
        digest: of which rules.
        replaces: the digest of those that were accepted before.
        by: who did.
        accepted_at: when, by the database's clock.
    """

    digest: str
    replaces: str
    by: str
    accepted_at: datetime


@dataclass(frozen=True, slots=True)
class AcceptedRules:
    """The rules that were accepted last.

    Attributes:
        rules: these.
        digest: the one under which they were accepted.
        acceptance: who accepted them and when; None for the built-in ones, which nobody has to.
    """

    rules: Rules
    digest: str
    acceptance: Acceptance | None


NOBODY_YET: Final = AcceptedRules(BUILTIN_RULES, BUILTIN_RULES.digest(), None)
"""What counts as accepted as long as nobody has accepted anything."""


class AcceptanceOvertakenError(StorageError):
    """Other rules were accepted since these were compared: nothing was recorded."""


class Acceptances:
    """The acceptances of one store; the newest counts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._documents = DocumentStore(store)

    async def current(self, known: AcceptedRules = NOBODY_YET) -> AcceptedRules:
        """Return the rules that were accepted last.

        Args:
            known: what was returned before; if it is still so, it is returned again.

        Raises:
            StorageError: it cannot be said, so no rules are in force.
        """
        async with self._store.read() as connection:
            newest = await _newest(connection)
        if newest is None:
            return NOBODY_YET
        acceptance = newest[1]
        if known.acceptance == acceptance:
            return known
        rules = await self._load(acceptance.digest)
        return AcceptedRules(rules, acceptance.digest, acceptance)

    async def accept(
        self, rules: Rules, *, replaces: AcceptedRules, widens: Iterable[Widening], by: str
    ) -> Acceptance:
        """Record that somebody accepted rules; they and those before them are kept for ever.

        Args:
            rules: what was accepted.
            replaces: what it was compared with.
            widens: what was shown of it.
            by: who accepted it.

        Raises:
            AcceptanceOvertakenError: other rules were accepted since then.
        """
        async with self._store.write() as connection:
            newest = await _newest(connection)
            seq, acceptance = newest if newest is not None else (0, None)
            if acceptance != replaces.acceptance:
                raise _overtaken()
            accepted = Acceptance(
                digest=rules.digest(),
                replaces=replaces.digest,
                by=by,
                accepted_at=await self._store.now(connection),
            )
            await _keep_bodies(connection, rules, replaces, accepted.accepted_at)
            if not await insert_first(connection, acceptances, {"seq": seq + 1, **vars(accepted)}):
                raise _overtaken()
            await append(connection, _entry(accepted, widens))
        return accepted

    async def _load(self, digest: str) -> Rules:
        found = await self._documents.get(SHARED, DocumentKind.POLICY, digest)
        if not isinstance(found, Document):
            raise StorageMisconfigured("the accepted rules are not in the store: restore a backup")
        try:
            return Rules.model_validate_json(found.body)
        except ValidationError:
            raise StorageMisconfigured(
                "the accepted rules are not of this version: use the version that accepted them"
            ) from None


async def _newest(connection: AsyncConnection) -> tuple[int, Acceptance] | None:
    found = await first_row(connection, _NEWEST)
    if found is None:
        return None
    values = dict(found)
    return values.pop("seq"), Acceptance(**values)


async def _keep_bodies(
    connection: AsyncConnection, rules: Rules, replaces: AcceptedRules, now: datetime
) -> None:
    """Keep what the acceptance names by digest; rules accepted earlier are there already."""
    new = [rules.body()] if replaces.acceptance else [replaces.rules.body(), rules.body()]
    for body in new:
        await keep(connection, SHARED, DocumentKind.POLICY, body, now=now)


def _entry(accepted: Acceptance, widens: Iterable[Widening]) -> AuditEntry:
    counts = Counter(widening.kind.value for widening in widens)
    return AuditEntry(
        tenant=EVERYBODY,
        kind="rules.accepted",
        subject=accepted.digest,
        at=accepted.accepted_at,
        details={"by": accepted.by, "replaces": accepted.replaces, "widens": dict(counts)},
    )


def _overtaken() -> AcceptanceOvertakenError:
    return AcceptanceOvertakenError("other rules were accepted meanwhile: look again")
