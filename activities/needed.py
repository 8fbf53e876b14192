"""How many people have to have approved a write, by the rules that its approval covers.

Why it exists: the run says how many it waited for, and whoever can run workflows of their own could
say one. So the number is read from the stored rules, and the rules are those whose digest was
signed. Where unsigned approvals count, only the run knows who gave them, and counts them itself.
"""

from __future__ import annotations

from typing import Final

from activities.services import Services
from triage.contracts.covering import approval_digest
from triage.contracts.payloads import WriteRequest

NOBODY_CAN: Final = 1_000_000
"""More than there can be: it is not known how many are needed."""


async def approvals_needed(services: Services, request: WriteRequest) -> int:
    """Return how many different people must be on record before the write may be sent."""
    if services.local_trust:
        return 1
    operation, rules = request.operation, request.policy_digest
    covered = approval_digest(operation.digest, operation.version, request.content_digest, rules)
    if covered != operation.approval_digest:
        return NOBODY_CAN
    try:
        return (await services.pinned_rules(rules)).approvals_required
    except LookupError:
        return NOBODY_CAN
