"""The gate: one pure function decides whether a review counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.contracts.strategies import PROPERTY
from tests.unit.workflows.builders import DEADLINE, DIGEST, IN_TIME, OTHER_DIGEST, a_review
from triage.contracts.approval import RefusalCode, Review, Verdict
from triage.policy.approval_gate import PendingOperation, Trust, judge, may_decide

COUNTS = a_review()
PENDING = PendingOperation("op-105", 3, DIGEST, DEADLINE)
OPEN_ENDED = PendingOperation("op-105", 3, DIGEST, None)
TRUSTED = Trust(local=True, author="octo")


@dataclass(frozen=True)
class Case:
    """One line of the decision table; the defaults are a review that counts."""

    expected: RefusalCode | None
    review: Review = COUNTS
    pending: PendingOperation | None = PENDING
    now: datetime = IN_TIME
    trust: Trust = TRUSTED
    decided: bool = False
    approved_by: tuple[str, ...] = ()


CASES = {
    "accepted": Case(None),
    "accepted with its digest": Case(None, a_review(digest=DIGEST)),
    "accepted as a rejection": Case(None, a_review(verdict=Verdict.REJECT)),
    "accepted long before": Case(None, now=DEADLINE - timedelta(days=30)),
    "accepted without a deadline": Case(None, pending=OPEN_ENDED, now=DEADLINE),
    "accepted without an author": Case(None, trust=Trust(local=True, author=None)),
    "nothing pending": Case(RefusalCode.NOT_PENDING, pending=None),
    "another operation": Case(RefusalCode.NOT_PENDING, a_review("op-106")),
    "an operation in other case": Case(RefusalCode.NOT_PENDING, a_review("OP-105")),
    "an operation with a blank": Case(RefusalCode.NOT_PENDING, a_review("op-105 ")),
    "an older version": Case(RefusalCode.STALE_VERSION, a_review(version=2)),
    "a newer version": Case(RefusalCode.STALE_VERSION, a_review(version=4)),
    "another digest": Case(RefusalCode.DIGEST_MISMATCH, a_review(digest=OTHER_DIGEST)),
    "at the deadline": Case(RefusalCode.EXPIRED, now=DEADLINE),
    "after the deadline": Case(RefusalCode.EXPIRED, now=DEADLINE + timedelta(days=1)),
    "no local trust": Case(RefusalCode.UNAUTHORISED, trust=Trust(local=False, author=None)),
    "a blank approver": Case(RefusalCode.UNAUTHORISED, a_review(approver=" \t")),
    "no name behind the at sign": Case(RefusalCode.UNAUTHORISED, a_review(approver="@ @")),
    "the author": Case(RefusalCode.UNAUTHORISED, a_review(approver="octo")),
    "the author in capitals": Case(RefusalCode.UNAUTHORISED, a_review(approver="OctO")),
    "the author with an at sign": Case(RefusalCode.UNAUTHORISED, a_review(approver="@octo")),
    "the author in blanks": Case(RefusalCode.UNAUTHORISED, a_review(approver=" @@ Octo\n")),
    "the author in between": Case(RefusalCode.UNAUTHORISED, a_review(approver="@ @ oc to")),
    "the author named with an at sign": Case(
        RefusalCode.UNAUTHORISED, a_review(approver="octo"), trust=Trust(True, " @OCTO ")
    ),
    "one of the approvers": Case(None, trust=Trust(True, "octo", ("@Ann", "bob"))),
    "none of the approvers": Case(
        RefusalCode.UNAUTHORISED, trust=Trust(local=True, author="octo", approvers=("bob",))
    ),
    "an approver in other letters": Case(
        None, a_review(approver=" @ANN"), trust=Trust(True, "octo", ("ann",))
    ),
    "a name that only looks like an approver's": Case(
        RefusalCode.UNAUTHORISED,
        a_review(approver="\u212aen"),
        trust=Trust(local=True, author="octo", approvers=("ken",)),
    ),
    "an approver who is the author": Case(
        RefusalCode.UNAUTHORISED, trust=Trust(local=True, author="ann", approvers=("ann",))
    ),
    "a bot": Case(RefusalCode.UNAUTHORISED, a_review(approver="helper[bot]")),
    "a bot in full width": Case(
        RefusalCode.UNAUTHORISED, a_review(approver="dependabot\uff3bbot\uff3d")
    ),
    "an author whom the start names": Case(
        RefusalCode.UNAUTHORISED,
        trust=Trust(local=True, author="octo", claimed_author="@Ann"),
    ),
    "a bot in capitals": Case(RefusalCode.UNAUTHORISED, a_review(approver="Helper[BOT] ")),
    "a second review": Case(RefusalCode.DUPLICATE, decided=True),
    "a second opinion": Case(
        RefusalCode.DUPLICATE, a_review(approver="bob", verdict=Verdict.REJECT), decided=True
    ),
    "a second approval after the wait": Case(RefusalCode.DUPLICATE, pending=None, decided=True),
    "a second approval while another operation waits": Case(
        RefusalCode.DUPLICATE,
        pending=PendingOperation("op-9", 3, DIGEST, DEADLINE),
        decided=True,
    ),
    "a second approval while the operation waits again": Case(
        RefusalCode.DUPLICATE,
        pending=PendingOperation("op-105", 6, DIGEST, DEADLINE),
        decided=True,
    ),
    "another version than that which was decided": Case(
        RefusalCode.NOT_PENDING, a_review(version=2), pending=None, decided=True
    ),
    "one of several": Case(None, approved_by=("bob",)),
    "the same person again": Case(RefusalCode.DUPLICATE, approved_by=("ann",)),
    "the same person in other letters": Case(
        RefusalCode.DUPLICATE, a_review(approver=" @ANN"), approved_by=("ann",)
    ),
    "a person who thinks again": Case(None, a_review(verdict=Verdict.REJECT), approved_by=("ann",)),
    "pending goes before version": Case(RefusalCode.NOT_PENDING, a_review("op-1", 9)),
    "version goes before digest": Case(
        RefusalCode.STALE_VERSION, a_review(version=9, digest=OTHER_DIGEST)
    ),
    "digest goes before expiry": Case(
        RefusalCode.DIGEST_MISMATCH, a_review(digest=OTHER_DIGEST), now=DEADLINE
    ),
    "expiry goes before rights": Case(RefusalCode.EXPIRED, a_review(approver="octo"), now=DEADLINE),
    "rights go before duplicates": Case(
        RefusalCode.UNAUTHORISED, a_review(approver="octo"), decided=True
    ),
}


def _judge(case: Case) -> RefusalCode | None:
    return judge(
        case.review,
        case.pending,
        now=case.now,
        trust=case.trust,
        decided=[("op-105", 3)] if case.decided else [],
        approved_by=case.approved_by,
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_decision_table(case: Case) -> None:
    """Each way in which a review can fail to count has its own code, in a fixed order."""
    assert case.expected is _judge(case)


def test_the_table_reaches_every_code() -> None:
    """All codes but malformed, which never reaches the gate, appear in the table."""
    assert {case.expected for case in CASES.values()} == {None, *RefusalCode} - {
        RefusalCode.MALFORMED
    }


_cases = st.builds(
    Case,
    expected=st.none(),
    review=st.builds(
        a_review,
        operation_id=st.sampled_from(("op-105", "op-105", "op-105", "op-1")),
        version=st.sampled_from((3, 3, 3, 2, 4)),
        approver=st.sampled_from(("ann", "bob", "octo", "@Octo", "a[bot]", " ")),
        digest=st.sampled_from((None, DIGEST, OTHER_DIGEST)),
        verdict=st.sampled_from(Verdict),
    ),
    pending=st.sampled_from((PENDING, PENDING, OPEN_ENDED, None)),
    now=st.sampled_from((IN_TIME, IN_TIME, DEADLINE, DEADLINE + timedelta(days=1))),
    trust=st.builds(
        Trust,
        local=st.sampled_from((True, True, True, False)),
        author=st.sampled_from((None, "octo", "OCTO", "bob")),
    ),
    decided=st.sampled_from((False, False, True)),
)


@PROPERTY
@given(_cases)
def test_a_review_counts_only_if_every_condition_holds(case: Case) -> None:
    """The gate accepts exactly when each condition, restated here, holds by itself."""
    review, pending = case.review, case.pending
    login = review.approver.strip(" @").lower()
    conditions = [
        pending is not None and review.operation_id == pending.operation_id,
        pending is not None and review.version == pending.version,
        pending is not None and review.digest in {None, pending.digest},
        pending is not None and (pending.expires_at is None or case.now < pending.expires_at),
        case.trust.local,
        login not in {"", (case.trust.author or "").lower()},
        not login.endswith("[bot]"),
        not case.decided,
    ]
    assert all(conditions) is (_judge(case) is None)


@pytest.mark.parametrize(
    ("approver", "author", "expected"),
    [
        ("ann", None, True),
        ("ann", "octo", True),
        ("ann", "", True),
        ("robot", "octo", True),
        ("bot", "octo", True),
        ("[bot]x", "octo", True),
        ("[bot]", "octo", False),
        ("STRASSE", "stra\u00dfe", False),
        ("", None, False),
        ("", "", False),
        ("@", None, False),
    ],
)
def test_who_may_decide(approver: str, author: str | None, expected: bool) -> None:
    """Any named person but the author may decide where there is local trust."""
    assert expected is may_decide(approver, Trust(local=True, author=author))
    assert not may_decide(approver, Trust(local=False, author=author))
