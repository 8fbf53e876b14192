"""The desk: the first review that counts decides, and every other one is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.workflows.builders import (
    DEADLINE,
    DIGEST,
    IN_TIME,
    OTHER_DIGEST,
    a_pending_view,
    a_review,
)
from triage.contracts.approval import RefusalCode, Verdict
from triage.contracts.state import OperationView
from triage.policy.approval_gate import Trust
from workflows.review_desk import MAX_UNPROVEN, Decided, ReviewDesk
from workflows.state import RunState


@pytest.fixture
def state() -> RunState:
    """Return the state that the desk writes to."""
    return RunState()


@pytest.fixture
def desk(state: RunState) -> ReviewDesk:
    """Return a desk that waits for a decision, in a run with local trust."""
    desk = ReviewDesk(state)
    desk.trust = Trust(local=True, author="octo")
    desk.open(a_pending_view())
    return desk


def test_nobody_is_trusted_before_the_run_says_so(state: RunState) -> None:
    """A desk fails closed until its run has pinned who is trusted."""
    desk = ReviewDesk(state)
    desk.open(a_pending_view())
    assert desk.receive(a_review(), "signal", IN_TIME) is RefusalCode.UNAUTHORISED


def test_early_reviews_are_refused_and_not_stored(state: RunState) -> None:
    """A review that comes before the wait does not count once the wait begins."""
    desk = ReviewDesk(state)
    desk.trust = Trust(local=True, author=None)
    assert desk.receive(a_review(), "signal", IN_TIME) is RefusalCode.NOT_PENDING
    desk.open(a_pending_view())
    assert desk.decided is None


def test_an_open_desk_shows_what_is_pending(desk: ReviewDesk, state: RunState) -> None:
    """What the `pending` query shows is what is waited for, and nothing else is changed."""
    assert a_pending_view() == state.pending
    assert (0, []) == (state.version, state.refusals)


@pytest.mark.parametrize("verdict", Verdict)
def test_the_first_review_that_counts_decides(desk: ReviewDesk, verdict: Verdict) -> None:
    """Approval or rejection: the first one wins, and later ones are duplicates."""
    first = a_review(verdict=verdict, digest=DIGEST)
    assert desk.receive(first, "update", IN_TIME) is None
    for other in Verdict:
        later = a_review(approver="bob", verdict=other)
        assert desk.receive(later, "signal", IN_TIME) is RefusalCode.DUPLICATE
    assert Decided(review=first, source="update", at=IN_TIME.isoformat()) == desk.decided


def test_a_refused_review_decides_nothing(desk: ReviewDesk) -> None:
    """Reviews that do not count leave the place free for the one that does."""
    for wrong, code in (
        (a_review("op-1"), RefusalCode.NOT_PENDING),
        (a_review(version=2), RefusalCode.STALE_VERSION),
        (a_review(digest=OTHER_DIGEST), RefusalCode.DIGEST_MISMATCH),
        (a_review(approver="octo"), RefusalCode.UNAUTHORISED),
    ):
        assert code is desk.receive(wrong, "signal", IN_TIME)
        assert desk.decided is None
    assert desk.receive(a_review(), "signal", IN_TIME) is None


def test_the_deadline_is_absolute(desk: ReviewDesk) -> None:
    """However many bad messages come before, a review at the deadline is too late."""
    for minutes in range(30, 0, -1):
        desk.receive(a_review(version=2), "signal", DEADLINE - timedelta(minutes=minutes))
    assert desk.check(a_review(), IN_TIME) is None
    assert desk.receive(a_review(), "signal", DEADLINE) is RefusalCode.EXPIRED


def test_a_check_changes_nothing(desk: ReviewDesk, state: RunState) -> None:
    """Asking whether a review would count neither decides nor records."""
    before = state.view()
    assert desk.check(a_review(), IN_TIME) is None
    assert desk.check(a_review(version=9), IN_TIME) is RefusalCode.STALE_VERSION
    assert desk.decided is None
    assert before == state.view()


def test_a_closed_desk_waits_for_nothing(desk: ReviewDesk, state: RunState) -> None:
    """After the wait nothing is pending, and what was decided stays for the loop to act on."""
    desk.receive(a_review(), "signal", IN_TIME)
    desk.close()
    late = a_review(approver="bob")
    assert desk.receive(late, "signal", IN_TIME) is RefusalCode.DUPLICATE
    assert desk.receive(a_review(version=2), "signal", IN_TIME) is RefusalCode.NOT_PENDING
    assert state.pending is None
    assert desk.decided is not None
    assert desk.decided.review.approver == "ann"


def test_the_next_operation_needs_its_own_decision(desk: ReviewDesk) -> None:
    """A decision never carries over to what is pending next, even under the same operation id."""
    desk.receive(a_review(), "signal", IN_TIME)
    desk.close()
    desk.open(a_pending_view(version=6))
    assert desk.decided is None
    assert desk.receive(a_review(), "signal", IN_TIME) is RefusalCode.DUPLICATE
    assert desk.receive(a_review(version=4), "signal", IN_TIME) is RefusalCode.STALE_VERSION
    assert desk.receive(a_review(version=6), "signal", IN_TIME) is None


def test_refusals_are_kept_with_code_and_time(desk: ReviewDesk, state: RunState) -> None:
    """A refusal records what was claimed and when; a malformed message claims nothing."""
    desk.refuse(RefusalCode.EXPIRED, DEADLINE, a_review(approver="bob"))
    desk.refuse(RefusalCode.MALFORMED, IN_TIME)
    first, second = (refusal.model_dump() for refusal in state.refusals)
    assert {
        "code": "expired",
        "operation_id": "op-105",
        "version": 3,
        "approver": "bob",
        "at": "2030-01-02T12:00:00+00:00",
        "reason": "the time to decide is over",
    } == first
    assert ("malformed", None, None, None) == (
        second["code"],
        second["operation_id"],
        second["version"],
        second["approver"],
    )


def test_refusals_do_not_grow_without_bound(desk: ReviewDesk, state: RunState) -> None:
    """A flood of bad messages keeps fifty records and the true count."""
    for _ in range(1_000):
        desk.refuse(RefusalCode.MALFORMED, IN_TIME)
    assert (50, 1_000) == (len(state.refusals), state.refusals_total)


def test_a_stale_review_is_told_what_changed(desk: ReviewDesk, state: RunState) -> None:
    """The refusal names both versions and the fields that edits have changed since."""
    state.version = 3
    state.reopen(("title", "body"))
    desk.open(a_pending_view(version=6))
    assert (
        "it is pending at version 6, not 3: the request was edited since (title, body);"
        " look at it again"
    ) == desk.reason(RefusalCode.STALE_VERSION, a_review())
    assert "it is pending at version 6, not 5; look at it again" == desk.reason(
        RefusalCode.STALE_VERSION, a_review(version=5)
    )


def test_a_withdrawn_operation_is_named_as_such(desk: ReviewDesk, state: RunState) -> None:
    """Between an edit and the next proposal, a review of the old one is told of the edit."""
    desk.close()
    state.version = 3
    state.operations.append(
        OperationView(operation_id="op-105", version=3, digest=DIGEST, state="withdrawn")
    )
    state.reopen(("changed_paths",))
    assert (
        "the operation was withdrawn: the request was edited since (changed_paths)"
        == desk.reason(RefusalCode.NOT_PENDING, a_review())
    )
    unknown = desk.reason(RefusalCode.NOT_PENDING, a_review("op-1"))
    assert "the run is not waiting for this operation" == unknown


def test_a_duplicate_is_answered_with_the_first_outcome(desk: ReviewDesk, state: RunState) -> None:
    """Whoever comes second learns who decided what, when, and what has become of it."""
    desk.receive(a_review(), "signal", IN_TIME)
    said = f"approved by ann at {IN_TIME.isoformat()}"
    late = a_review(approver="bob", verdict=Verdict.REJECT)
    assert said == desk.reason(RefusalCode.DUPLICATE, late)
    desk.close()
    state.operations.append(
        OperationView(operation_id="op-105", version=3, digest=DIGEST, state="applied")
    )
    assert f"{said}; the operation is applied" == desk.reason(RefusalCode.DUPLICATE, late)


def _of_two(state: RunState) -> ReviewDesk:
    desk = ReviewDesk(state)
    desk.trust = Trust(local=True, author=None)
    desk.open(a_pending_view().model_copy(update={"approvals_required": 2}))
    return desk


def test_where_two_must_approve_one_person_is_one(state: RunState) -> None:
    """The same person twice, under any spelling or name, leaves the operation pending."""
    desk = _of_two(state)
    assert desk.receive(a_review(), "signal", IN_TIME, "user-1") is None
    for again in (a_review(), a_review(approver="@Ann ")):
        assert desk.receive(again, "signal", IN_TIME) is RefusalCode.DUPLICATE
    renamed = a_review(approver="annette")
    assert desk.receive(renamed, "signal", IN_TIME, "user-1") is RefusalCode.DUPLICATE
    assert desk.decided is None
    assert state.pending is not None
    assert ("ann",) == state.pending.approved_by
    reason = desk.reason(RefusalCode.DUPLICATE, a_review())
    assert "this person has approved it already; 1 of 2 approvals are given" == reason
    assert desk.receive(a_review(approver="bob"), "signal", IN_TIME, "user-2") is None
    [verdict] = state.verdicts
    assert ("bob", ("ann", "bob")) == (verdict.approver, verdict.approved_by)


def test_where_two_must_approve_one_may_reject(state: RunState) -> None:
    """One rejection decides, whoever approved before, and whoever approved may think again."""
    desk = _of_two(state)
    assert desk.receive(a_review(), "signal", IN_TIME) is None
    assert desk.receive(a_review(verdict=Verdict.REJECT), "signal", IN_TIME) is None
    assert desk.decided is not None
    assert Verdict.REJECT is desk.decided.review.verdict
    assert state.verdicts[0].approved_by is None


def test_who_signed_is_known_to_the_next_execution(state: RunState) -> None:
    """A desk that goes on with a wait knows the signers so far, whatever they call themselves."""
    first = _of_two(state)
    assert first.receive(a_review(), "signal", IN_TIME, "user-1") is None
    desk = ReviewDesk(state)
    desk.trust = Trust(local=True, author=None)
    assert first.shown is not None
    desk.open(first.shown, first.decided, first.subjects)
    renamed = a_review(approver="annette")
    assert desk.receive(renamed, "signal", IN_TIME, "user-1") is RefusalCode.DUPLICATE
    assert desk.receive(renamed, "signal", IN_TIME, "user-2") is None
    assert desk.decided is not None


def test_signed_reviews_do_not_pile_up(desk: ReviewDesk) -> None:
    """The same one waits once, and only so many wait to be verified; the rest is refused."""
    desk.trust = Trust(local=False, author=None)
    signed = [
        a_review(approver=f"p{number}", digest=DIGEST).model_copy(update={"token": "a.b.c"})
        for number in range(MAX_UNPROVEN + 1)
    ]
    assert desk.take(signed[0], IN_TIME) is None
    assert desk.take(signed[0], IN_TIME) is RefusalCode.DUPLICATE
    assert [None] * (MAX_UNPROVEN - 1) == [desk.take(one, IN_TIME) for one in signed[1:-1]]
    assert desk.take(signed[-1], IN_TIME) is RefusalCode.DUPLICATE
    assert MAX_UNPROVEN == len(desk.unproven)


@pytest.mark.parametrize(
    ("approver", "trust", "said"),
    [
        ("ann", Trust(local=True, author=None, approvers=("bob",)), "not_named_by_rules"),
        ("ann", Trust(local=False, author=None), "not_signed"),
        ("ann", Trust(local=True, author="Ann"), "issue_author"),
        ("ann[bot]", Trust(local=True, author=None), "bot"),
        ("@", Trust(local=True, author=None), "no_name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_check_that_refused_has_a_word_of_its_own(
    desk: ReviewDesk, approver: str, trust: Trust, said: str
) -> None:
    """Whoever reads the log learns which check said no, and no name of anybody."""
    desk.trust = trust
    review = a_review(approver=approver)
    assert desk.check(review, IN_TIME) is RefusalCode.UNAUTHORISED
    assert f"unauthorised ({said})" == desk.check_of(RefusalCode.UNAUTHORISED, review)
    assert "expired" == desk.check_of(RefusalCode.EXPIRED, review)
