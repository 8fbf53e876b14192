"""Says of each review that came whether it counted, from what the history holds.

Why it exists: a history records what people sent, not what the run made of it. Refusals of signals
are in the run's state, which only a worker can tell; so the same checks are made here once more,
in the workflow's order, and `tests/unit/story` holds both to the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from triage.contracts.approval import RefusalCode, Review
from triage.contracts.canonical import digest_of


class StartingApproval(StrEnum):
    """What an approval that a run was started with is worth to an operation."""

    COUNTS = "accepted"
    STALE = RefusalCode.STALE_VERSION.value
    UNAUTHORISED = RefusalCode.UNAUTHORISED.value


@dataclass(frozen=True, slots=True)
class Proposal:
    """A write that was proposed, as far as it is known.

    Attributes:
        target: tracker, repository and issue.
        proposed_by: ``model`` or ``orchestrator``.
    """

    operation_id: str
    version: int
    tool: str
    target: dict[str, str]
    labels: tuple[str, ...]
    proposed_by: str

    def approval_digest(self, content_digest: str, policy_digest: str) -> str:
        """Return the digest over everything that a reviewer is shown."""
        operation = digest_of([self.tool, self.target, list(self.labels)])
        return digest_of([operation, self.version, content_digest, policy_digest])


@dataclass(frozen=True, slots=True)
class Wait:
    """What a run waits for a person to decide on.

    Attributes:
        digest: what an approval must carry, if it carries one.
        deadline: from when on no decision counts; None if it is not known.
    """

    operation_id: str
    version: int
    digest: str
    deadline: datetime | None


@dataclass(slots=True)
class Desk:
    """Where reviews arrive.

    Attributes:
        local: whether unsigned approvals count; None while it is not known.
        author: the issue's author, who never decides.
        approvers: the only people who may decide; empty for anybody.
        waiting: whether the run waits for a person.
        wait: on what; None if that cannot be read.
        decided: the review that counted.
        verdicts: operation id and version of everything that was decided on.
        unproven: signed reviews that came by signal and have to be verified, in that order.
    """

    local: bool | None = None
    author: str = ""
    approvers: tuple[str, ...] = ()
    waiting: bool = False
    wait: Wait | None = None
    since: datetime | None = None
    decided: Review | None = None
    verdicts: set[tuple[str, int]] = field(default_factory=set)
    unproven: list[Review] = field(default_factory=list)

    def open(self, since: datetime, wait: Wait | None) -> None:
        """Begin to wait."""
        self.waiting, self.since, self.wait, self.decided = True, since, wait, None

    def close(self) -> None:
        """Stop waiting."""
        self.waiting, self.wait = False, None

    def is_known(self) -> bool:
        """Whether it can be said which reviews count."""
        return not self.waiting or (self.wait is not None and self.local is not None)

    def judge(self, review: Review, now: datetime) -> RefusalCode | None:
        """Return why a review that arrives now does not count, or None if it does."""
        wait = self.wait
        is_decided = (review.operation_id, review.version) in self.verdicts
        if wait is None or review.operation_id != wait.operation_id:
            return RefusalCode.DUPLICATE if is_decided else RefusalCode.NOT_PENDING
        if review.version != wait.version:
            return RefusalCode.DUPLICATE if is_decided else RefusalCode.STALE_VERSION
        if review.digest is not None and review.digest != wait.digest:
            return RefusalCode.DIGEST_MISMATCH
        if wait.deadline is not None and now >= wait.deadline:
            return RefusalCode.EXPIRED
        if not self._may_decide(review):
            return RefusalCode.UNAUTHORISED
        if review.digest is None and not self.local:
            return RefusalCode.DIGEST_MISMATCH
        return RefusalCode.DUPLICATE if is_decided else None

    def decide(self, review: Review) -> None:
        """Take the review that counted."""
        self.decided = review
        self.verdicts.add((review.operation_id, review.version))

    def claimed_by(self, approver: str) -> Review | None:
        """Take the oldest unproven review, of `approver` if there is one, off the desk."""
        theirs = [review for review in self.unproven if review.approver == approver]
        found = next(iter(theirs or self.unproven), None)
        if found is not None:
            self.unproven.remove(found)
        return found

    def _may_decide(self, review: Review) -> bool:
        """Whether this approver may, if the signature, if there is one, is good."""
        name = _folded(review.approver)
        trusted = self.local is True or review.token is not None
        if self.approvers and name not in map(_folded, self.approvers):
            return False
        is_author = bool(self.author) and name == _folded(self.author)
        return trusted and bool(name) and not is_author and not name.endswith("[bot]")


def _folded(login: str) -> str:
    return "".join(login.split()).lstrip("@").casefold()
