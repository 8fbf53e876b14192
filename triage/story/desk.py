"""Says of each review that came whether it counted, from what the history holds.

Why it exists: a history records what people sent, not what the run made of it. Refusals of signals
are in the run's state, which only a worker can tell; so the same gate is asked here once more, with
what the history holds, and `tests/unit/story` holds both desks to the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from triage.contracts.approval import RefusalCode, Review, Verdict
from triage.contracts.covering import approval_digest, operation_digest
from triage.contracts.logins import folded
from triage.policy.approval_gate import PendingOperation, Trust, judge, may_decide

START: Final = "start"
SIGNAL: Final = "signal"
UPDATE: Final = "update"
"""How a review comes."""


class StartingApproval(StrEnum):
    """What an approval that a run was started with is worth to an operation."""

    COUNTS = "accepted"
    UNPROVEN = "unproven"
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

    @property
    def digest(self) -> str:
        """The digest over what would be written."""
        return operation_digest(self.tool, self.target, self.labels)

    def approval_digest(self, content_digest: str, policy_digest: str) -> str:
        """Return the digest over everything that a reviewer is shown."""
        return approval_digest(self.digest, self.version, content_digest, policy_digest)


@dataclass(frozen=True, slots=True)
class Wait:
    """What a run waits for a person to decide on.

    Attributes:
        digest: what an approval must carry, if it carries one.
        deadline: from when on no decision counts; None if it is not known.
        approvals_required: how many people have to approve.
    """

    operation_id: str
    version: int
    digest: str
    deadline: datetime | None
    approvals_required: int = 1

    @property
    def operation(self) -> PendingOperation:
        """The operation, as the gate looks at it."""
        return PendingOperation(
            operation_id=self.operation_id,
            version=self.version,
            digest=self.digest,
            expires_at=self.deadline,
        )


@dataclass(slots=True)
class Desk:
    """Where reviews arrive.

    Attributes:
        local: whether unsigned approvals count; None while it is not known.
        author: the issue's author, who never decides.
        claimed_author: another one, whom the start named.
        approvers: the only people who may decide; empty for anybody.
        waiting: whether the run waits for a person.
        wait: on what; None if that cannot be read.
        decided: the review that decided.
        required: how many people have to approve what is, or was last, waited for.
        approved_by: who has approved so far, where one person is not enough.
        subjects: the stable ids of those of them who signed.
        verdicts: the review that decided, by operation id and version.
        starting: the signed approval from the run's start that has to be verified.
        asked: signed reviews that came by update, and have to be verified.
        granted: those of them that were answered in the end that they count.
        unproven: signed reviews that came by signal and have to be verified, in that order.
        again: the tokens that are verified once more, since they have come to decide.
    """

    local: bool | None = None
    author: str = ""
    claimed_author: str = ""
    approvers: tuple[str, ...] = ()
    waiting: bool = False
    wait: Wait | None = None
    since: datetime | None = None
    decided: Review | None = None
    required: int = 1
    approved_by: list[str] = field(default_factory=list)
    subjects: set[str] = field(default_factory=set)
    verdicts: dict[tuple[str, int], Review] = field(default_factory=dict)
    starting: Review | None = None
    asked: list[Review] = field(default_factory=list)
    granted: list[Review] = field(default_factory=list)
    unproven: list[Review] = field(default_factory=list)
    again: frozenset[str] = frozenset()

    def open(self, since: datetime, wait: Wait | None, approved_by: Iterable[str] = ()) -> None:
        """Begin to wait, or go on with a wait for which some have approved already."""
        self.waiting, self.since, self.wait, self.decided = True, since, wait, None
        self.approved_by, self.subjects = [*approved_by], set()
        self.required = wait.approvals_required if wait else 1

    def close(self) -> None:
        """Stop waiting."""
        self.waiting, self.wait = False, None

    def is_known(self) -> bool:
        """Whether it can be said which reviews count."""
        return not self.waiting or (self.wait is not None and self.local is not None)

    def judge(self, review: Review, now: datetime) -> RefusalCode | None:
        """Return why a review that arrives now does not count, or None if it does."""
        return judge(
            review,
            self.wait.operation if self.wait else None,
            now=now,
            trust=self._trust(),
            decided=self.verdicts,
            approved_by=[folded(name) for name in self.approved_by],
            signed=review.token is not None,
        )

    def judge_start(self, review: Review, version: int, required: int) -> StartingApproval:
        """Say what an approval that came with the start is worth to what is pending at `version`.

        Where several people have to approve, one who did so beforehand is not enough.
        """
        if review.version != version:
            return StartingApproval.STALE
        may = may_decide(review.approver, self._trust(), signed=review.token is not None)
        if not may or required > 1:
            return StartingApproval.UNAUTHORISED
        return StartingApproval.COUNTS if self.local else StartingApproval.UNPROVEN

    def receive(
        self, review: Review, now: datetime, subject: str | None = None
    ) -> RefusalCode | None:
        """Take a review whose signature, if any, is good; return why it does not count, or None.

        One person under two names is one person: `subject` is the signer's stable id.
        """
        code = self.judge(review, now)
        again = review.verdict is Verdict.APPROVE and subject in self.subjects
        if code is None and again:
            code = RefusalCode.DUPLICATE
        if code is None:
            self.take(review, subject)
        return code

    def take(self, review: Review, subject: str | None = None) -> None:
        """Take a review that counts; taking it twice is taking it once.

        Where the rules want several people, approvals add up, and one rejection is enough.
        """
        if review.verdict is Verdict.APPROVE and self.required > 1:
            self.subjects |= {subject} if subject else set()
            if not self.has_approved(review):
                self.approved_by.append(review.approver)
            if len(self.approved_by) < self.required:
                return
        self.decided = self.decided or review
        self.verdicts.setdefault((review.operation_id, review.version), review)

    def claim(self, token: str, approver: str) -> tuple[Review, str] | None:
        """Take a review whose signature was verified off the desk, and say how it had come.

        It is the oldest one with this token. Where no token can be read, it is the oldest one of
        `approver` if there is one, else the oldest one.
        """
        starting = [(self.starting, START)] if self.starting else []
        others = [(r, UPDATE) for r in self.asked] + [(r, SIGNAL) for r in self.unproven]
        every = [*starting, *others]
        theirs = [pair for pair in every if pair[0].approver == approver]
        exact = [pair for pair in every if token and pair[0].token == token]
        found = next(iter(exact or theirs or every), None)
        if found is not None:
            self._forget(*found)
        return found

    def put_back(self, review: Review, channel: str) -> None:
        """Keep a review that was claimed, since its signature is verified once more."""
        (self.asked if channel == UPDATE else self.unproven).insert(0, review)

    def _forget(self, review: Review, channel: str) -> None:
        if channel == START:
            self.starting = None
        elif channel == UPDATE:
            self.asked.remove(review)
        else:
            self.unproven.remove(review)

    def has_approved(self, review: Review) -> bool:
        """Whether this person's approval is among those that are given so far."""
        return folded(review.approver) in map(folded, self.approved_by)

    def decided_on(self, review: Review) -> Review | None:
        """Return the review that decided on the same operation and version."""
        return self.verdicts.get((review.operation_id, review.version))

    def who_approved(self, operation_id: str, version: int | None) -> list[str]:
        """Return all of several people who approved this operation; empty if one was enough."""
        decided = self.decided
        if decided is None or (decided.operation_id, decided.version) != (operation_id, version):
            return []
        return [*self.approved_by]

    def _trust(self) -> Trust:
        return Trust(
            local=self.local is True,
            author=self.author or None,
            approvers=self.approvers,
            claimed_author=self.claimed_author or None,
        )
