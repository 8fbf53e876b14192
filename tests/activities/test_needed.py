"""How many people a write needs is read from the rules that their approvals cover."""

from __future__ import annotations

from dataclasses import replace

from activities.needed import NOBODY_CAN, approvals_needed
from tests.activities.writing import Writing
from triage.contracts.canonical import digest_of
from triage.contracts.payloads import WriteRequest
from triage.policy.rules import BUILTIN_RULES

TWO = BUILTIN_RULES.model_copy(update={"approvals_required": 2})


async def test_the_rules_say_how_many(writing: Writing) -> None:
    """Whatever the run says: the rules are the ones whose digest the approval covers."""
    signed = replace(writing.services, local_trust=False)
    request = _under(writing.request(), await signed.pin_rules(TWO))
    assert 2 == await approvals_needed(signed, request)
    assert 1 == await approvals_needed(writing.services, request)


async def test_rules_that_nobody_signed_allow_nothing(writing: Writing) -> None:
    """Other rules than the approval covers, or rules that are not on record, are not enough."""
    signed = replace(writing.services, local_trust=False)
    request = _under(writing.request(), await signed.pin_rules(TWO))
    lenient = await signed.pin_rules(BUILTIN_RULES)
    swapped = request.model_copy(update={"policy_digest": lenient})
    unknown = _under(request, "sha256:" + "0" * 64)
    for forged in (swapped, unknown):
        assert NOBODY_CAN == await approvals_needed(signed, forged)


def _under(request: WriteRequest, rules: str) -> WriteRequest:
    """The write as it is approved under these rules."""
    operation = request.operation
    covered = [operation.digest, operation.version, request.content_digest, rules]
    approved = operation.model_copy(update={"approval_digest": digest_of(covered)})
    return request.model_copy(update={"operation": approved, "policy_digest": rules})
