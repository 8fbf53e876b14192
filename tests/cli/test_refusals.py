"""Checks what a reviewer is told whose decision did not count."""

from __future__ import annotations

import pytest

from tests.cli.samples import pending_view, state_view
from triage.cli import refusals, reviewing
from triage.cli.refusals import ADVICE, Known, changed, mismatch, refused
from triage.contracts.approval import REFUSAL_MEANING, RefusalCode, Review, Verdict
from triage.contracts.canonical import digest_of
from triage.contracts.state import OperationView

REVIEW = Review(operation_id="op-6", version=6, approver="ann", verdict=Verdict.APPROVE)
OTHER = f"sha256:{'0' * 64}"


@pytest.mark.parametrize("code", RefusalCode)
def test_each_refusal_has_its_code_a_sentence_and_advice(code: RefusalCode) -> None:
    """Nobody is left with a bare no."""
    told = refused(code, "", REVIEW, state_view(pending_view()), is_signed=False)
    assert str(told).startswith(f"{code.value}: ")
    assert ADVICE[code] == told.hint


def test_a_stale_version_names_both() -> None:
    """Whoever looked at another version is told which one it was and which one it is."""
    stale = REVIEW.model_copy(update={"version": 3})
    told = refused(
        RefusalCode.STALE_VERSION, "", stale, state_view(pending_view()), is_signed=False
    )
    assert "stale_version: op-6 is pending at version 6, not 3; look at it again" == str(told)


def test_another_operation_is_told_which_one_is_waited_for() -> None:
    """Whoever mistypes an operation's id sees the one that they may have meant."""
    other = REVIEW.model_copy(update={"operation_id": "op-5"})
    told = refused(RefusalCode.NOT_PENDING, "", other, state_view(pending_view()), is_signed=False)
    assert str(told).endswith("is not waiting for this operation, but for op-6 at version 6")


def test_the_run_s_own_sentence_wins() -> None:
    """What the run says of its own refusal is more than what the code means."""
    state, reason = state_view(pending_view()), "approved by ann already; it is applied"
    told = refused(RefusalCode.DUPLICATE, reason, REVIEW, state, is_signed=False)
    plain = REFUSAL_MEANING[RefusalCode.EXPIRED]
    assert f"duplicate: {reason}" == str(told)
    assert f"expired: {plain}" == str(
        refused(RefusalCode.EXPIRED, plain, REVIEW, state, is_signed=False)
    )


def test_a_decision_that_was_taken_is_told() -> None:
    """Whoever comes second learns what became of the operation."""
    done = OperationView(operation_id="op-6", version=6, digest=OTHER, state="applied")
    state = state_view(None).model_copy(update={"operations": (done,)})
    told = refused(RefusalCode.NOT_PENDING, "", REVIEW, state, is_signed=False)
    assert "not_pending: op-6 at version 6 is applied already" == str(told)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, None),
        ({"digest": pending_view().digest}, None),
        ({"operation_id": "op-5"}, RefusalCode.NOT_PENDING),
        ({"version": 5}, RefusalCode.STALE_VERSION),
        ({"digest": OTHER}, RefusalCode.DIGEST_MISMATCH),
    ],
    ids=str,
)
def test_a_review_is_about_what_was_shown(
    changes: dict[str, object], code: RefusalCode | None
) -> None:
    """Another operation, version or digest is seen before anything is signed."""
    assert code == mismatch(REVIEW.model_copy(update=changes), pending_view())


def test_without_an_operation_there_is_nothing_to_sign() -> None:
    """A run that waits for nobody has nothing that a review could be about."""
    assert RefusalCode.NOT_PENDING == mismatch(REVIEW, None)


def test_nothing_but_what_was_shown_can_be_decided() -> None:
    """A review carries the digest of what was shown, and of nothing if nothing was."""
    shown = reviewing._bound(REVIEW, pending_view())
    unseen = reviewing._bound(REVIEW, None)
    assert (pending_view().digest, digest_of(None)) == (shown.digest, unseen.digest)


def test_a_change_is_told() -> None:
    """A run that went on after it was shown is told apart from one that did not."""
    shown = pending_view()
    later = shown.model_copy(update={"operation_id": "op-9", "version": 9})
    assert "" == changed(shown, shown)
    assert changed(shown, later).endswith("op-9 is pending at version 9 now")
    assert changed(shown, None).endswith("nothing is pending any more")


@pytest.mark.parametrize(
    ("approver", "known", "is_signed", "hint"),
    [
        ("helper[bot]", Known(), False, refusals.IS_BOT),
        ("@Ann", Known(author="ann"), True, refusals.IS_AUTHOR),
        ("bob", Known(author="ann", signs=True), False, refusals.UNSIGNED),
        ("bob", Known(author="ann"), False, refusals.NOT_NAMED),
        ("bob", Known(), False, ADVICE[RefusalCode.UNAUTHORISED]),
        ("bob", Known(author="ann", signs=True), True, refusals._SIGNED[RefusalCode.UNAUTHORISED]),
    ],
    ids=("a bot", "the author", "unsigned", "not named", "not known", "signed"),
)
def test_who_may_not_decide_hears_why(
    approver: str, known: Known, hint: str, *, is_signed: bool
) -> None:
    """The cause that is known here stands alone; the list is for where none is."""
    review = REVIEW.model_copy(update={"approver": approver})
    state = state_view(pending_view())
    code = RefusalCode.UNAUTHORISED
    assert hint == refused(code, "", review, state, is_signed=is_signed, known=known).hint


def test_who_signed_in_vain_is_sent_to_the_rules_too() -> None:
    """A good signature of somebody whom the rules do not name has a cause that one can look up."""
    assert "'triage policy show'" in refusals._SIGNED[RefusalCode.UNAUTHORISED]


@pytest.mark.parametrize("is_signed", [False, True])
def test_who_decides_twice_hears_who_is_missing(*, is_signed: bool) -> None:
    """Where more people have to approve, nobody is told that nothing is left to do."""
    pending = pending_view(approvals_required=3, approved_by=("ann",))
    told = refused(RefusalCode.DUPLICATE, "", REVIEW, state_view(pending), is_signed=is_signed)
    assert "2 more must approve it before it is written, each another person" == told.hint
