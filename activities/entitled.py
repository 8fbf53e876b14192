"""Whether those who approved by a service's word may still decide, asked right before a write.

Why it exists: between a comment and the write that it allows somebody may lose their rights, or
their login may become another person's. The ledger's own record says who it was; nothing that a run
claims of its approver is looked at.
"""

from __future__ import annotations

from activities.label_rows import key_of
from activities.services import Services
from activities.signers import why_not_signed_now
from triage.contracts.payloads import WriteRequest
from triage.policy.rules import Rules
from triage.storage.vouchers import Voucher, vouchers_of
from triage.trackers.base import Tracker, TrackerRefused
from triage.trackers.people import KnowsPeople, Person

NOT_ENTITLED = "an approver may not decide any more"
NOBODY_KNOWS = "the tracker does not say what an approver may do"


async def why_not_entitled(
    services: Services, request: WriteRequest, tracker: Tracker
) -> str | None:
    """Say why a write must not rest on its approvers any more, or None if it may.

    Each key that signed has to be in the keyring still; of those that signed with a key of their
    own nothing more is asked.

    Raises:
        TrackerTimeout: nobody can say; try again.
        TrackerUnavailable: likewise.
    """
    if (gone := await why_not_signed_now(services, request)) is not None:
        return gone
    key = key_of(request)
    found = await vouchers_of(services.store, key, request.operation.version)
    if not found:
        return None
    if not isinstance(tracker, KnowsPeople):
        return NOBODY_KNOWS
    rules = await services.pinned_rules(request.policy_digest)
    target = request.operation.target
    for voucher in found:
        if voucher.tracker != target.tracker:
            return NOT_ENTITLED
        try:
            person = await tracker.person(target.repository, voucher.login)
        except TrackerRefused:
            return NOBODY_KNOWS
        if not is_entitled(person, voucher, rules):
            return NOT_ENTITLED
    return None


def is_entitled(person: Person | None, voucher: Voucher, rules: Rules) -> bool:
    """Whether somebody is still who they were, a human, and of a right that the rules take."""
    if person is None or person.id != voucher.person_id or not person.may_answer:
        return False
    return person.right.value in rules.comment_rights
