"""What a refused review is told: its code, a sentence, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from triage.cli.errors import RefusedError
from triage.cli.times import with_times_told
from triage.contracts.approval import REFUSAL_MEANING, RefusalCode, Review
from triage.contracts.logins import folded
from triage.contracts.state import PendingView, StateView

ADVICE: Final[dict[RefusalCode, str]] = {
    RefusalCode.NOT_PENDING: "'triage show ID' says what the run waits for, if it waits",
    RefusalCode.STALE_VERSION: "look at the operation again, and name the version that it has now",
    RefusalCode.DIGEST_MISMATCH: "look at the operation again: its digest covers other content",
    RefusalCode.EXPIRED: (
        "'triage resume ID' continues a run that has ended; if it still waits, look at this "
        "machine's clock"
    ),
    RefusalCode.DUPLICATE: (
        "the first decision stands; 'triage show ID' says what became of it, and whether others "
        "have to approve, too"
    ),
    RefusalCode.UNAUTHORISED: (
        "an issue's author and bots never decide, rules may name who does ('triage policy show'), "
        "and without local trust only signed approvals count (--sign)"
    ),
    RefusalCode.MALFORMED: "'triage schema approval' and 'triage schema review' print its shape",
}
"""What to do about each refusal, where nothing more is known."""

ABOUT_WHAT_WAS_SHOWN: Final = frozenset(
    {RefusalCode.NOT_PENDING, RefusalCode.STALE_VERSION, RefusalCode.DIGEST_MISMATCH}
)
"""Refusals that may mean that the run changed after it was shown."""

IS_BOT: Final = "bots never decide: a person has to"
IS_AUTHOR: Final = "an issue's author never decides on it: another person has to"
UNSIGNED: Final = (
    "only signed approvals count here: make a key with 'triage keys new NAME' and add --sign"
)
NOT_NAMED: Final = (
    "the rules name who decides, which 'triage policy show' lists, or the start of the run named "
    "another author"
)

_SIGNED: Final = {
    RefusalCode.UNAUTHORISED: (
        "the worker's log names the check: an approver whom the rules do not name ('triage policy "
        "show' lists them), a key that its keyring does not have or that is retired, a clock that "
        "is ahead; an issue's author and bots never decide"
    ),
    RefusalCode.EXPIRED: "if the run still waits, this machine's clock is behind the database's",
}


@dataclass(frozen=True, slots=True)
class Known:
    """What is known here of who may decide on an operation.

    Attributes:
        author: who opened the issue; None if that is not known here.
        signs: whether only signed approvals count.
    """

    author: str | None = None
    signs: bool = False


def mismatch(review: Review, pending: PendingView | None) -> RefusalCode | None:
    """Return why `review` is not about what was shown, so that nothing else is ever signed."""
    if pending is None or review.operation_id != pending.operation_id:
        return RefusalCode.NOT_PENDING
    if review.version != pending.version:
        return RefusalCode.STALE_VERSION
    if review.digest not in {None, pending.digest}:
        return RefusalCode.DIGEST_MISMATCH
    return None


def refused(
    code: RefusalCode,
    reason: str,
    review: Review,
    state: StateView,
    *,
    is_signed: bool,
    known: Known | None = None,
) -> RefusedError:
    """Return what to tell whoever sent `review`.

    Args:
        code: why it did not count.
        reason: the run's own sentence; empty if it gave none.
        review: what was sent.
        state: the run as it was shown before.
        is_signed: whether it was signed, which leaves other causes.
        known: what is known here of who may decide.
    """
    hint = _SIGNED.get(code) if is_signed else None
    if code is RefusalCode.UNAUTHORISED and known is not None:
        hint = why_unauthorised(review.approver, known, is_signed=is_signed) or hint
    if code is RefusalCode.DUPLICATE:
        hint = _others_missing(review, state.pending)
    return RefusedError(
        f"{code.value}: {_sentence(code, reason, review, state)}", hint or ADVICE[code]
    )


def why_unauthorised(approver: str, known: Known, *, is_signed: bool) -> str:
    """Return the one cause that applies; empty if several may."""
    name = folded(approver)
    if name.endswith("[bot]"):
        return IS_BOT
    if known.author and folded(known.author) == name:
        return IS_AUTHOR
    if is_signed:
        return ""
    if known.signs:
        return UNSIGNED
    return NOT_NAMED if known.author else ""


def _others_missing(review: Review, shown: PendingView | None) -> str:
    """Say how many have still to approve what waits; empty if nothing waits for more."""
    if shown is None or mismatch(review, shown) is not None:
        return ""
    missing = shown.approvals_required - len(shown.approved_by)
    if shown.approvals_required == 1 or missing < 1:
        return ""
    return f"{missing} more must approve it before it is written, each another person"


def _sentence(code: RefusalCode, reason: str, review: Review, state: StateView) -> str:
    meaning = REFUSAL_MEANING[code]
    if reason and reason != meaning:
        return with_times_told(reason)
    shown = state.pending
    if code is RefusalCode.STALE_VERSION and shown is not None:
        return (
            f"{shown.operation_id} is pending at version {shown.version}, not {review.version}; "
            "look at it again"
        )
    if code is RefusalCode.NOT_PENDING and shown is not None:
        meaning = f"{meaning}, but for {shown.operation_id} at version {shown.version}"
    return first_outcome(review, state) or meaning


def first_outcome(review: Review, state: StateView) -> str:
    """Say what became of the operation that `review` is about, if it was decided already."""
    named = (review.operation_id, review.version)
    states = [o.state for o in state.operations if named == (o.operation_id, o.version)]
    if not states:
        return ""
    return f"{review.operation_id} at version {review.version} is {states[-1]} already"


def changed(shown: PendingView | None, now: PendingView | None) -> str:
    """Say how what the run waits for has changed since it was shown; empty if it has not."""
    if _identity(shown) == _identity(now):
        return ""
    if now is None:
        return "it changed after it was shown: nothing is pending any more"
    return (
        f"it changed after it was shown: {now.operation_id} is pending at version {now.version} now"
    )


def _identity(pending: PendingView | None) -> tuple[str, int, str] | None:
    if pending is None:
        return None
    return pending.operation_id, pending.version, pending.digest
