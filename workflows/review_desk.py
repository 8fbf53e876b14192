"""The desk where reviews arrive: it holds the pending operation and the first valid decision.

Pure. Handlers only hand messages in; the workflow's main loop acts on the decision.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from triage.contracts.approval import REFUSAL_MEANING, RefusalCode, Review, Verdict
from triage.contracts.base import Contract
from triage.contracts.logins import folded
from triage.contracts.state import PendingView, RefusalView, VerdictNote
from triage.policy.approval_gate import PendingOperation, Trust, judge, why_not
from workflows.state import WITHDRAWN, RunState

MAX_UNPROVEN: Final = 20
"""How many signed reviews may wait to be verified: each takes some milliseconds of a run's time."""

Source = Literal["start", "signal", "update"]


class Decided(Contract):
    """The review that counted, and when it came (ISO 8601, UTC)."""

    review: Review
    source: Source
    at: str


class ReviewDesk:
    """Receives reviews for one run.

    Attributes:
        trust: who may decide.
        decided: the review that decided on the pending operation.
        subjects: the stable ids of those who have signed an approval of it so far.
        unproven: signed reviews that came by signal and have to be verified, in that order.
    """

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._pending: PendingOperation | None = None
        self.subjects: tuple[str, ...] = ()
        self.trust = Trust(local=False, author=None)
        self.decided: Decided | None = None
        self.unproven: list[Review] = []

    def open(
        self,
        view: PendingView,
        decided: Decided | None = None,
        subjects: tuple[str, ...] = (),
    ) -> None:
        """Begin to wait, or go on waiting, for a decision on exactly what `view` shows."""
        self._state.pending = view
        self._pending = PendingOperation(
            operation_id=view.operation_id,
            version=view.version,
            digest=view.digest,
            expires_at=datetime.fromisoformat(view.expires_at),
        )
        self.subjects = subjects
        self.decided = decided

    @property
    def shown(self) -> PendingView | None:
        """What a person is asked, as it is shown now."""
        return self._state.pending

    def close(self) -> None:
        """Stop waiting; later reviews are not pending."""
        self._state.pending = None
        self._pending = None

    def check(self, review: Review, now: datetime) -> RefusalCode | None:
        """Return why `review` would be refused, changing nothing.

        A signature is taken to be good here: `prove` verifies it before the review counts.
        """
        shown = self._state.pending
        return judge(
            review,
            self._pending,
            now=now,
            trust=self.trust,
            decided=[(note.operation_id, note.version) for note in self._state.verdicts],
            approved_by=[folded(name) for name in shown.approved_by] if shown else (),
            signed=self.needs_proof(review),
        )

    def check_of(self, code: RefusalCode, review: Review) -> str:
        """Return which check refused `review`, in a word that quotes nothing of it, for a log."""
        signed = self.needs_proof(review)
        unauthorised = code is RefusalCode.UNAUTHORISED
        detail = why_not(review.approver, self.trust, signed=signed) if unauthorised else None
        return f"{code.value} ({detail})" if detail else code.value

    def would_decide(self, review: Review) -> bool:
        """Whether nobody else has to agree with `review` any more, if it counts."""
        view = self._state.pending
        if view is None or review.verdict is Verdict.REJECT:
            return True
        return len(view.approved_by) + 1 >= view.approvals_required

    def needs_proof(self, review: Review) -> bool:
        """Whether a signature decides; where unsigned approvals count, none is looked at."""
        return review.token is not None and not self.trust.local

    def take(self, review: Review, now: datetime) -> RefusalCode | None:
        """Take a review from a signal: one with a signature waits until the main loop proved it."""
        if not self.needs_proof(review):
            return self.receive(review, "signal", now)
        code = self.check(review, now)
        if code is None and (review in self.unproven or len(self.unproven) >= MAX_UNPROVEN):
            code = RefusalCode.DUPLICATE
        if code is None:
            self.unproven.append(review)
        return code

    def receive(
        self, review: Review, source: Source, now: datetime, subject: str | None = None
    ) -> RefusalCode | None:
        """Take a review whose signature, if any, is good: the first one that counts decides.

        Where the rules want several people, approvals add up, and one rejection is enough.

        Args:
            review: what came.
            source: how.
            now: when.
            subject: the signer's stable id: one person under two names is one person.
        """
        code = self.check(review, now)
        again = review.verdict is Verdict.APPROVE and subject in self.subjects
        if code is None and again:
            code = RefusalCode.DUPLICATE
        if code is None:
            self._count(review, source, now, subject)
        return code

    def _count(self, review: Review, source: Source, now: datetime, subject: str | None) -> None:
        view = self._state.pending
        if view is None:
            return
        approves = review.verdict is Verdict.APPROVE
        if approves and view.approvals_required > 1:
            self.subjects += (subject,) if subject is not None else ()
            view = view.model_copy(update={"approved_by": (*view.approved_by, review.approver)})
            self._state.pending = view
            if len(view.approved_by) < view.approvals_required:
                return
        self.decided = Decided(review=review, source=source, at=now.isoformat())
        self._state.verdicts.append(
            VerdictNote(
                operation_id=review.operation_id,
                version=review.version,
                verdict=review.verdict,
                approver=review.approver,
                at=now.isoformat(),
                note=review.note,
                approved_by=view.approved_by if approves and view.approved_by else None,
            )
        )

    def refuse(self, code: RefusalCode, now: datetime, review: Review | None = None) -> None:
        """Keep a refusal in the run's state."""
        self._state.refuse(
            RefusalView(
                code=code.value,
                operation_id=review.operation_id if review else None,
                version=review.version if review else None,
                approver=review.approver if review else None,
                at=now.isoformat(),
                reason=self.reason(code, review),
            )
        )

    def reason(self, code: RefusalCode, review: Review | None) -> str:
        """Say in a sentence why a review is refused, and what has happened since it was written."""
        meaning = REFUSAL_MEANING[code]
        if review is None:
            return meaning
        match code:
            case RefusalCode.STALE_VERSION if self._pending is not None:
                at = f"it is pending at version {self._pending.version}, not {review.version}"
                return f"{at}{self._changed_since(review.version)}; look at it again"
            case RefusalCode.NOT_PENDING if self._was_withdrawn(review):
                return f"the operation was withdrawn{self._changed_since(review.version)}"
            case RefusalCode.DUPLICATE:
                return self._first_outcome(review) or meaning
            case _:
                return meaning

    def _was_withdrawn(self, review: Review) -> bool:
        named = (review.operation_id, review.version, WITHDRAWN)
        return any(named == (o.operation_id, o.version, o.state) for o in self._state.operations)

    def _changed_since(self, version: int) -> str:
        """Name the parts of the request that edits have changed since `version`."""
        later = [name for e in self._state.edits if e.version >= version for name in e.fields]
        names = ", ".join(dict.fromkeys(later)) or "nothing but its version"
        edited = any(edit.version >= version for edit in self._state.edits)
        return f": the request was edited since ({names})" if edited else ""

    def _first_outcome(self, review: Review) -> str | None:
        """Say how the operation was decided, and what has become of it."""
        named = (review.operation_id, review.version)
        shown = self._state.pending
        if shown is not None and folded(review.approver) in map(folded, shown.approved_by):
            given = f"{len(shown.approved_by)} of {shown.approvals_required} approvals are given"
            return f"this person has approved it already; {given}"
        for note in self._state.verdicts:
            if named == (note.operation_id, note.version):
                said = "approved" if note.verdict is Verdict.APPROVE else "rejected"
                return f"{said} by {note.approver} at {note.at}{self._became(named)}"
        return None

    def _became(self, named: tuple[str, int]) -> str:
        states = [o.state for o in self._state.operations if named == (o.operation_id, o.version)]
        return f"; the operation is {states[-1]}" if states else ""
