"""The approval gate: one pure function decides whether a review counts.

Used alike for the `approve` and `reject` signals, the `review` update and the approvals that a
caller starts a run with, by the run itself and by whoever tells its history. Every check fails
closed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from triage.contracts.approval import RefusalCode, Review, Verdict
from triage.contracts.logins import exact, folded


@dataclass(frozen=True, slots=True)
class PendingOperation:
    """What the run is waiting on; `digest` covers everything that the reviewer saw."""

    operation_id: str
    version: int
    digest: str
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Trust:
    """Who may decide in this run.

    Attributes:
        local: whether unsigned approvals count, from any named approver.
        author: the issue's author, who may never approve; None if there is none.
        claimed_author: another one, whom the start of the run named.
        approvers: the only people who may decide; empty for anybody whose approval is trusted.
    """

    local: bool
    author: str | None
    approvers: tuple[str, ...] = ()
    claimed_author: str | None = None

    @property
    def authors(self) -> tuple[str, ...]:
        """Who may never approve."""
        return tuple(author for author in (self.author, self.claimed_author) if author)


def judge(
    review: Review,
    pending: PendingOperation | None,
    *,
    now: datetime,
    trust: Trust,
    decided: Collection[tuple[str, int]] = (),
    approved_by: Collection[str] = (),
    signed: bool = False,
) -> RefusalCode | None:
    """Return why `review` does not count, or None if it does.

    A review that comes exactly at the deadline, or in the same workflow task as the expiry, is
    expired: the absolute deadline decides, not the order of messages.

    Args:
        review: a well-formed envelope.
        pending: the operation that the run waits on, if it waits.
        now: the workflow's time.
        trust: who may decide.
        decided: operation id and version of everything that was decided on already.
        approved_by: who has approved the pending operation, where one person is not enough.
        signed: whether it carries a signature, which is verified before it counts.
    """
    is_decided = (review.operation_id, review.version) in decided
    if pending is None or review.operation_id != pending.operation_id:
        return RefusalCode.DUPLICATE if is_decided else RefusalCode.NOT_PENDING
    if review.version != pending.version:
        return RefusalCode.DUPLICATE if is_decided else RefusalCode.STALE_VERSION
    if review.digest is not None and review.digest != pending.digest:
        return RefusalCode.DIGEST_MISMATCH
    if pending.expires_at is not None and now >= pending.expires_at:
        return RefusalCode.EXPIRED
    if not may_decide(review.approver, trust, signed=signed):
        return RefusalCode.UNAUTHORISED
    if review.digest is None and not trust.local:
        return RefusalCode.DIGEST_MISMATCH
    again = review.verdict is Verdict.APPROVE and folded(review.approver) in approved_by
    return RefusalCode.DUPLICATE if is_decided or again else None


def may_decide(approver: str, trust: Trust, *, signed: bool = False) -> bool:
    """Whether `approver` may decide: a person whom the rules permit and who did not open the issue.

    Without local trust only signed approvals count.
    """
    return why_not(approver, trust, signed=signed) is None


def why_not(approver: str, trust: Trust, *, signed: bool) -> str | None:
    """Return a word for why `approver` may not decide, for a log; None if they may."""
    if trust.approvers and exact(approver) not in map(exact, trust.approvers):
        return "not_named_by_rules"
    name = folded(approver)
    if not (trust.local or signed):
        return "not_signed"
    if not name:
        return "no_name"
    if name in map(folded, trust.authors):
        return "issue_author"
    return "bot" if name.endswith("[bot]") else None
