"""Every published case of approval security that concerns tokens, by its name.

Why it exists: the list is data that others add to. A new case fails here until it has a test, or is
said to be tested elsewhere because no token is part of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from tests.activities import test_approvals as activity_tests
from tests.unit.signing.makers import (
    ALICE,
    BOB,
    NOW,
    RING,
    SECOND,
    STATEMENT,
    claims,
    counts,
    detail_of,
    encoded,
    forged,
    payload_bytes,
    person,
    token,
)
from triage.contracts.approval import RefusalCode
from triage.contracts.canonical import canonical_json, digest_of
from triage.signing.keys import Keyring
from triage.signing.refusals import CODE_OF, Detail

CASES: Final = Path(__file__).parents[3] / "fixtures/security/approval_negative_cases.json"


def _valid() -> Detail | None:
    return detail_of(token())


def _retired_after_issue() -> Detail | None:
    """The policy is that an old token lives out its minutes and a new one does not count."""
    ring = RING.with_retired(ALICE.kid, NOW + SECOND)
    counts(token(), ring)
    later = NOW + 2 * SECOND
    return detail_of(token(now=later), ring, now=later)


def _lost_role() -> Detail | None:
    given = token()
    counts(given)
    return detail_of(given, RING.without(ALICE.kid))


def _recycled_login() -> Detail | None:
    """Somebody else took the login `alice` and has a key, but not her numeric id."""
    _, newcomer, entry = person("alice", "2002")
    claimed = canonical_json(claims(newcomer, sub="1001").model_dump(mode="json"))
    ring = RING.without(ALICE.kid).with_key(entry)
    counts(token(newcomer), ring)
    return detail_of(forged(key=newcomer, payload=claimed), ring)


def _recycled_login_old_token() -> Detail | None:
    _, _, entry = person("alice", "2002")
    return detail_of(token(), RING.without(ALICE.kid).with_key(entry))


def _twice_the_same_claim() -> Detail | None:
    return detail_of(forged(payload=payload_bytes()[:-1] + b',"state_version":3}'))


def _bad_signatures() -> Detail | None:
    head, body, signature = token().split(".")
    variants = [
        signature[:-1],
        signature[:-2],
        signature + "=",
        signature + "==",
        encoded(b"\0" * 64),
    ]
    found = [detail_of(f"{head}.{body}.{variant}") for variant in variants]
    assert all(found), found
    return found[-1]


def _other_digest() -> Detail | None:
    wider = digest_of(["apply_labels", "ISSUE-101", ["bug", "security"]])
    return detail_of(token(), expected=replace(STATEMENT, digest=wider))


def _nbf(seconds: int) -> Detail | None:
    stamp = int(NOW.timestamp())
    return detail_of(token(nbf=stamp + seconds))


C: Final = RefusalCode
PURE: Final[dict[str, tuple[Callable[[], Detail | None], RefusalCode | None]]] = {
    "none": (_valid, None),
    "nbf in the future": (lambda: _nbf(1), C.UNAUTHORISED),
    "exp in the past by 1 s": (
        lambda: detail_of(token(), now=NOW + timedelta(minutes=15, seconds=1)),
        C.EXPIRED,
    ),
    "iss other": (lambda: detail_of(token(iss="another-issuer")), C.UNAUTHORISED),
    "aud other service": (
        lambda: detail_of(token(aud="bounded-triage/approve:staging")),
        C.UNAUTHORISED,
    ),
    "kid unknown": (lambda: detail_of(token(), RING.without(ALICE.kid)), C.UNAUTHORISED),
    "kid path traversal ../../dev/null": (
        lambda: detail_of(forged(kid="../../dev/null")),
        C.MALFORMED,
    ),
    "kid retired after issue": (_retired_after_issue, C.UNAUTHORISED),
    "approver lost role since issue": (_lost_role, C.UNAUTHORISED),
    "login renamed/recycled": (_recycled_login, C.UNAUTHORISED),
    "duplicate claim keys in JWT JSON": (_twice_the_same_claim, C.MALFORMED),
    "signature truncated / base64 padding variants": (_bad_signatures, C.UNAUTHORISED),
    "replay to other workflow": (
        lambda: detail_of(token(), expected=replace(STATEMENT, workflow_id="triage-102")),
        C.NOT_PENDING,
    ),
    "state_version older": (
        lambda: detail_of(token(), expected=replace(STATEMENT, version=4)),
        C.STALE_VERSION,
    ),
    "state_version newer": (
        lambda: detail_of(token(), expected=replace(STATEMENT, version=2)),
        C.STALE_VERSION,
    ),
    "op digest differs by one label": (_other_digest, C.DIGEST_MISMATCH),
}

WITH_A_STORE: Final = {
    "replay same token after consumption": "test_a_used_token_is_refused",
    "replay to next run (continue-as-new)": "test_a_token_is_not_used_in_a_second_run",
    "approve then reject race": "test_the_first_decision_wins",
    "concurrent double approve": "test_many_answers_at_once_leave_one_decision",
}

WITHOUT_A_TOKEN: Final = {
    "two approvers required, same person twice",
    "10,000 junk signals",
    "approval after workflow closed",
    "approval for an op already applied",
}


def test_every_case_has_its_place() -> None:
    """A case that is added to the list fails here until somebody tests it."""
    listed = [case["case"] for case in json.loads(CASES.read_text(encoding="utf-8"))]
    assert sorted(listed) == sorted((*PURE, *WITH_A_STORE, *WITHOUT_A_TOKEN))
    assert all(hasattr(activity_tests, name) for name in WITH_A_STORE.values())


@pytest.mark.parametrize("case", PURE)
def test_case(case: str) -> None:
    """The verifier answers each case with its code."""
    run, expected = PURE[case]
    detail = run()
    assert expected == (CODE_OF[detail] if detail else None)


def test_a_recycled_login_has_no_use_for_its_predecessors_token() -> None:
    """The key's owner counts, not the name that the owner had."""
    assert Detail.UNKNOWN_KEY is _recycled_login_old_token()


def test_keys_are_rotated_with_an_overlap() -> None:
    """While an old key retires, its last tokens and the new key's first ones count side by side."""
    _, renewed, entry = person("alice", "1001")
    last, first = token(now=NOW - SECOND), token(renewed)
    ring = Keyring.of([*RING.entries, entry]).with_retired(ALICE.kid, NOW)
    assert (None, None) == (detail_of(last, ring), detail_of(first, ring))
    assert Detail.KEY_RETIRED is detail_of(token(), ring)
    assert counts(last, ring).subject == counts(first, ring).subject
    assert detail_of(token(BOB), ring, replace(STATEMENT, approver="bob")) is None


def test_a_stolen_key_is_worthless_a_quarter_of_an_hour_after_it_retired() -> None:
    """A thief may date a token back before the retirement, but not keep it alive for long."""
    ring = RING.with_retired(ALICE.kid, NOW)
    backdated = token(now=NOW - SECOND)
    assert detail_of(backdated, ring) is None
    assert Detail.EXPIRED is detail_of(backdated, ring, now=NOW + timedelta(minutes=15))


def test_a_key_has_a_first_day() -> None:
    """A token that is dated before its key counted is refused, one of that second is not."""
    _, late, entry = person("alice", "1001")
    ring = Keyring.of([entry.model_copy(update={"not_before": NOW + SECOND})])
    assert Detail.KEY_NOT_YET_USED is detail_of(token(late), ring)
    first = Keyring.of([entry.model_copy(update={"not_before": NOW})])
    assert detail_of(token(late), first) is None
