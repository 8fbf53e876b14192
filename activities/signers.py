"""Whether the keys that signed for a write still count, asked right before it is sent.

Why it exists: where several people have to sign, the first may have signed long before the last.
Whoever takes a key out of the ring in between says that nothing of it counts, whenever signed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from activities.label_rows import key_of
from activities.needed import approvals_needed
from activities.services import Services
from triage.contracts.payloads import WriteRequest
from triage.signing.keys import Keyring, KeyringError
from triage.storage.approvals import find_approval
from triage.storage.approvers import signers_of

KEY_GONE = "the key of an approver does not count any more"
NO_RING = "the keyring cannot be read, so no signature counts"


async def why_not_signed_now(services: Services, request: WriteRequest) -> str | None:
    """Say why a write must not rest on the keys that signed for it, or None if it may.

    A key that was retired is still in the ring: what it signed before counts.
    """
    if services.local_trust:
        return None
    key = key_of(request)
    async with services.store.read() as connection:
        stands = await find_approval(connection, key, request.operation.version)
        signers = await signers_of(connection, stands) if stands else {}
    if not signers:
        return None
    try:
        ring = await asyncio.to_thread(services.keyring.load)
    except KeyringError:
        return NO_RING
    counted = _counted(signers, ring)
    if counted == len(signers):
        return None
    return None if counted >= await approvals_needed(services, request) else KEY_GONE


def _counted(signers: Mapping[str, frozenset[str | None]], ring: Keyring) -> int:
    """Count those of whom a key still counts; who is not known to have signed by one does not."""
    known = {entry.kid for entry in ring.entries}
    return sum(not known.isdisjoint(kids) for kids in signers.values())
