"""Who has agreed to an undo where the rules want several people, by the audit trail alone.

Why it exists: an undo has no run that could wait. So each person's consent is put on the trail, and
the undo happens with the one that makes them enough. A consent is to exactly what was shown, under
exactly these rules; whatever of it changes, all have to agree again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from triage.contracts.logins import folded
from triage.signing.keys import Keyring
from triage.storage.approvals import ApprovalRow, Approvals
from triage.storage.approvers import consents_to
from triage.storage.engine import Store

CONSENT_LIFETIME: Final = timedelta(hours=24)
"""After that a consent does not count any more: whoever gave it looks again."""


@dataclass(frozen=True)
class Consents:
    """How many people have agreed, the one who asks now included, and how many have to."""

    given: int
    required: int

    @property
    def suffice(self) -> bool:
        """Whether it may be done."""
        return self.given >= self.required


async def count_consent(
    store: Store, decision: ApprovalRow, tenant: str, required: int, ring: Keyring | None
) -> Consents:
    """Put a consent on the trail unless it is there or it is the last one needed, and count.

    Args:
        store: where the trail is.
        decision: who agrees to what; the last one is recorded by whoever carries the undo out.
        tenant: whose trail.
        required: how many people have to agree.
        ring: where consents are signed, the keys that count now.
    """
    who = _person_of(ring)

    async def counted() -> tuple[Consents, bool]:
        found = await consents_to(store, decision)
        others = {who(one) for one in found} - {None, who(decision.approver)}
        return Consents(len(others) + 1, required), decision.approver in found

    consents, is_known = await counted()
    if consents.suffice or is_known:
        return consents
    async with store.read() as connection:
        until = await store.now(connection) + CONSENT_LIFETIME
    await Approvals(store).note(replace(decision, expires_at=until), tenant)
    # Others may have agreed at the same moment, and each would wait for the rest.
    return (await counted())[0]


def _person_of(ring: Keyring | None) -> Callable[[str], str | None]:
    """Return what tells people apart: a name in any letters, or who still has a key that counts."""
    if ring is None:
        return folded
    people = {entry.subject for entry in ring.entries if entry.retired_at is None}
    return lambda subject: subject if subject in people else None
