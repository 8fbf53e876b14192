"""Who may undo a write: whoever might have approved it, by the rules of now; and in which form.

Why it exists: taking a label off is a write, too. So its author's issue is not theirs to decide
on, named approvers stay the only ones, and where approvals are signed this one is. It is signed
and verified here, since no run waits for it; the ledger keeps it like any other decision.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from triage.cli import key_files
from triage.cli.briefing_trust import signs_by_settings
from triage.cli.errors import InputError, RefusedError
from triage.cli.policy_state import place_of, policy_state
from triage.cli.undo_consents import Consents, count_consent
from triage.cli.who import who
from triage.contracts.approval import Verdict as ReviewVerdict
from triage.contracts.canonical import digest_of, short_hash
from triage.contracts.logins import exact, folded
from triage.policy.rules import Rules
from triage.settings import Settings
from triage.signing.files import KeyringFile
from triage.signing.keys import Keyring, KeyringError, SigningError, SigningKey
from triage.signing.refusals import Refusal
from triage.signing.tokens import ISSUER, Statement, VerifiedApproval, new_claims, sign, verify
from triage.storage.approvals import ApprovalRow, Approvals, ApprovalSource, Verdict
from triage.storage.engine import Store
from triage.storage.operations import OperationRow
from triage.trackers.undo_plan import UndoPlan

AUDIENCE: Final = f"{ISSUER}/undo"
"""No approval of a run's operation counts here, nor the other way round."""
LIFETIME: Final = timedelta(minutes=5)


class Rights:
    """Decides whether somebody may undo a write.

    Args:
        settings: this command's.
        by: the name that was given, if one was.
        key: the key to sign with, if it is to be signed.
    """

    def __init__(self, settings: Settings, by: str | None, key: SigningKey | None) -> None:
        self._settings = settings
        self._key = key
        self.name = key.approver if key else who(by)

    async def check(self, store: Store, plan: UndoPlan) -> Rules:
        """Return the rules of now, and only if this person may undo this write by them.

        Raises:
            RefusedError: they may not, or have to sign.
            RulesFileError: the rules cannot be used.
            StorageError: it cannot be said.
        """
        rules = (await policy_state(self._settings, place_of(self._settings, None))).standing.rules
        if (problem := why_not(self.name, plan.issue.author, rules)) is not None:
            raise RefusedError(f"{self.name} may not undo this: {problem}")
        if self._key is None and await self._is_to_be_signed(store, plan):
            raise RefusedError(
                "only a signed undo counts here", "add --sign; 'triage keys new NAME' makes a key"
            )
        return rules

    async def consents(
        self, store: Store, decision: ApprovalRow, tenant: str, required: int
    ) -> Consents:
        """Count this person in, and return how many agree: the last one needed is not recorded.

        Raises:
            InputError: the ring cannot be used.
            StorageError: it cannot be said.
        """
        if required == 1:
            return Consents(1, 1)
        ring = None if self._key is None else _ring(self._settings)
        return await count_consent(store, decision, tenant, required, ring)

    async def _is_to_be_signed(self, store: Store, plan: UndoPlan) -> bool:
        if signs_by_settings(self._settings):
            return True
        record = plan.record
        approval = await Approvals(store).get(record.operation_key, record.version)
        return approval is not None and approval.source is ApprovalSource.TOKEN

    async def approval(
        self, store: Store, plan: UndoPlan, row: OperationRow, rules: Rules
    ) -> ApprovalRow:
        """Return the decision to undo exactly what was shown by these rules, signed with the key.

        Raises:
            InputError: the key or the ring cannot be used.
            RefusedError: the signature does not count.
        """
        async with store.read() as connection:
            now = await store.now(connection)
        by = digest_of(rules.model_dump(mode="json"))
        shown = [row.digest, plan.issue.content_digest, sorted(plan.issue.labels), by]
        decision = ApprovalRow(
            approval_id=short_hash(row.operation_key, str(row.version)),
            scope=row.scope,
            operation_key=row.operation_key,
            operation_id=row.operation_id,
            version=row.version,
            digest=digest_of(shown),
            operation_digest=row.digest,
            verdict=Verdict.APPROVE,
            approver=self.name,
            source=ApprovalSource.START,
            decided_at=now,
            expires_at=now + LIFETIME,
        )
        if self._key is None:
            return decision
        return self._signed(decision, row, self._key, plan.issue.author, now)

    def _signed(
        self, decision: ApprovalRow, row: OperationRow, key: SigningKey, author: str, now: datetime
    ) -> ApprovalRow:
        said = Statement(
            audience=AUDIENCE,
            workflow_id=row.workflow_id,
            operation_id=row.operation_id,
            version=row.version,
            digest=decision.digest,
            verdict=ReviewVerdict.APPROVE,
            approver=self.name,
            scope=row.scope,
        )
        ring = _ring(self._settings)
        try:
            token = sign(new_claims(said, key, now, lifetime=LIFETIME), key)
        except SigningError as error:
            raise InputError(f"cannot be signed: {error}") from None
        found = verify(token, ring, said, now)
        if isinstance(found, Refusal):
            raise RefusedError(f"the signature does not count: {found.detail.value}")
        if author and folded(author) in _names(ring, found):
            raise RefusedError("who opened the issue may not undo this, by any name")
        return _with_token(decision, found)


def why_not(name: str, author: str, rules: Rules) -> str | None:
    """Say why somebody may not undo a write, or None if they may (pure)."""
    if rules.approvers and exact(name) not in map(exact, rules.approvers):
        return "the rules name others as approvers"
    if author and folded(name) == folded(author):
        return "who opened the issue decides on none of its writes"
    return "bots decide on no write" if folded(name).endswith("[bot]") else None


def key_of(
    settings: Settings, given: Path | None, by: str | None, *, wanted: bool
) -> SigningKey | None:
    """Read the key to sign with, if it is to be signed.

    Raises:
        InputError: it cannot be used, or is not the key of who is to do it.
    """
    if not wanted:
        if given is not None:
            raise InputError("--key names a key to sign with", "add --sign, or leave --key out")
        return None
    key = key_files.own_key(key_files.own_key_path(settings, given))
    if by not in {None, key.approver}:
        raise InputError(f"this is the key of {key.approver}", "leave --as out, or name the owner")
    return key


def _ring(settings: Settings) -> Keyring:
    try:
        return KeyringFile(key_files.ring_path(settings)).load()
    except KeyringError as error:
        raise InputError(f"no signature can be verified: {error}") from None


def _names(ring: Keyring, found: VerifiedApproval) -> set[str]:
    return {folded(entry.approver) for entry in ring.entries if entry.subject == found.subject}


def _with_token(decision: ApprovalRow, found: VerifiedApproval) -> ApprovalRow:
    values = vars(decision) | {
        "approver": found.subject,
        "source": ApprovalSource.TOKEN,
        "token_id": found.token_id,
    }
    return ApprovalRow(**values)
