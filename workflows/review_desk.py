"""The desk where reviews arrive: it holds the pending operation and the first valid decision.

Pure. Handlers only hand messages in; the workflow's main loop acts on the decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from triage.contracts.approval import RefusalCode, Review
from triage.contracts.state import PendingView, RefusalView
from workflows.approval_gate import PendingOperation, Trust, judge
from workflows.state import RunState

Source = Literal["start", "signal", "update"]


@dataclass(frozen=True, slots=True)
class Decided:
    """The review that counted."""

    review: Review
    source: Source
    at: datetime


class ReviewDesk:
    """Receives reviews for one run."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._pending: PendingOperation | None = None
        self.trust = Trust(local=False, author=None)
        self.decided: Decided | None = None
        self.unproven: list[Review] = []

    def open(self, view: PendingView) -> None:
        """Begin to wait for a decision on exactly what `view` shows."""
        self._state.pending = view
        self._pending = PendingOperation(
            operation_id=view.operation_id,
            version=view.version,
            digest=view.digest,
            expires_at=datetime.fromisoformat(view.expires_at),
        )
        self.decided = None

    def close(self) -> None:
        """Stop waiting; later reviews are not pending."""
        self._state.pending = None
        self._pending = None

    def check(self, review: Review, now: datetime) -> RefusalCode | None:
        """Return why `review` would be refused, changing nothing.

        A signature is taken to be good here: `Writer.prove` verifies it before the review counts.
        """
        return judge(
            review,
            self._pending,
            now=now,
            trust=self.trust,
            decided=self.decided is not None,
            signed=self.needs_proof(review),
        )

    def needs_proof(self, review: Review) -> bool:
        """Whether a signature decides; where unsigned approvals count, none is looked at."""
        return review.token is not None and not self.trust.local

    def take(self, review: Review, now: datetime) -> RefusalCode | None:
        """Take a review from a signal: one with a signature waits until the main loop proved it."""
        if not self.needs_proof(review):
            return self.receive(review, "signal", now)
        code = self.check(review, now)
        if code is None:
            self.unproven.append(review)
        return code

    def receive(self, review: Review, source: Source, now: datetime) -> RefusalCode | None:
        """Take a review whose signature, if any, is good: the first one that counts decides."""
        code = self.check(review, now)
        if code is None:
            self.decided = Decided(review, source, now)
        return code

    def refuse(self, code: RefusalCode, now: datetime, review: Review | None = None) -> None:
        """Keep a refusal in the run's state."""
        self._state.refuse(
            RefusalView(
                code=code.value,
                operation_id=review.operation_id if review else None,
                version=review.version if review else None,
                approver=review.approver if review else None,
                at=now.isoformat(),
            )
        )
