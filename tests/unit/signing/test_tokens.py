"""A token counts for exactly what was signed, by whom and when; anything else is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.contracts.strategies import PROPERTY
from tests.unit.signing.makers import (
    ALICE,
    BOB,
    NOW,
    RING,
    SECOND,
    STATEMENT,
    changed_payload,
    claims,
    counts,
    detail_of,
    forged,
    token,
)
from triage.contracts.approval import RefusalCode, Verdict
from triage.signing.keys import SigningError
from triage.signing.refusals import CODE_OF, Detail
from triage.signing.tokens import MAX_LIFETIME, Statement, new_claims, sign

GOOD = token()


def test_a_token_says_who_signed_what_and_until_when() -> None:
    """A verified approval names the person, the key and the end of a quarter of an hour."""
    verified = counts(GOOD)
    assert ("1001", "alice", ALICE.kid) == (verified.subject, verified.approver, verified.kid)
    assert Verdict.APPROVE is verified.verdict
    assert (NOW, NOW + MAX_LIFETIME) == (verified.issued_at, verified.expires_at)


def test_two_tokens_of_one_statement_differ() -> None:
    """Each token has a single-use id of its own, of which only a digest is shown."""
    first, second = token(), token()
    assert counts(first).token_id != counts(second).token_id
    assert counts(first).token_id == counts(first).token_id
    assert claims().jti not in counts(first).token_id


def test_a_header_of_our_own_making_counts() -> None:
    """What the other tests change is a token that counts when nothing is changed."""
    assert detail_of(forged()) is None


def test_every_single_bit_counts() -> None:
    """A token with any one bit of any character flipped is refused."""
    accepted = [
        (place, bit)
        for place, character in enumerate(GOOD)
        for bit in range(8)
        if detail_of(GOOD[:place] + chr(ord(character) ^ 1 << bit) + GOOD[place + 1 :]) is None
    ]
    assert [] == accepted


def test_every_part_of_a_token_counts() -> None:
    """A token that was cut anywhere is refused."""
    assert [] == [size for size in range(len(GOOD)) if detail_of(GOOD[:size]) is None]


_parts = st.one_of(st.sampled_from(GOOD.split(".")), st.text(max_size=20), st.just("=" * 9))


@PROPERTY
@given(st.one_of(st.text(max_size=50), st.lists(_parts, max_size=4).map(".".join)))
def test_any_text_is_answered(text: str) -> None:
    """Whatever is sent as a token, the verifier answers, and only the signed one counts."""
    assert (text == GOOD) == (detail_of(text) is None)


_texts = st.text(min_size=1, max_size=20)
_statements = st.builds(
    Statement,
    audience=st.sampled_from([STATEMENT.audience, "bounded-triage/approve:other"]),
    workflow_id=st.one_of(st.just(STATEMENT.workflow_id), _texts),
    operation_id=st.one_of(st.just(STATEMENT.operation_id), _texts),
    version=st.one_of(st.just(STATEMENT.version), st.integers(0, 2**53)),
    digest=st.sampled_from([STATEMENT.digest, "sha256:" + "0" * 64]),
    verdict=st.sampled_from(Verdict),
    approver=st.sampled_from(["alice", "bob", "Alice", "1001", "mallory"]),
    scope=st.sampled_from([STATEMENT.scope, "0" * 32, None]),
)


@PROPERTY
@given(_statements)
def test_a_token_counts_for_its_own_statement_only(expected: Statement) -> None:
    """A token is accepted exactly where run, operation, version, digest and the rest are equal."""
    assert (expected == STATEMENT) == (detail_of(GOOD, expected=expected) is None)


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"audience": "bounded-triage/approve:staging"}, Detail.OTHER_AUDIENCE),
        ({"workflow_id": "triage-102"}, Detail.OTHER_WORKFLOW),
        ({"scope": "0" * 32}, Detail.OTHER_RUN),
        ({"operation_id": "op-106"}, Detail.OTHER_OPERATION),
        ({"version": 2}, Detail.OTHER_VERSION),
        ({"version": 4}, Detail.OTHER_VERSION),
        ({"digest": "sha256:" + "0" * 64}, Detail.OTHER_DIGEST),
        ({"verdict": Verdict.REJECT}, Detail.OTHER_VERDICT),
        ({"approver": "bob"}, Detail.OTHER_APPROVER),
    ],
)
def test_what_differs_is_named(change: dict[str, object], detail: Detail) -> None:
    """Each thing that a token is bound to has a refusal of its own."""
    assert detail is detail_of(GOOD, expected=replace(STATEMENT, **change))  # type: ignore[arg-type] # a table holds any field's value


def test_a_token_without_a_scope_counts_in_any_run_of_the_workflow() -> None:
    """Whoever signs need not know the scope; workflow, version and digest still bind."""
    unscoped = token(scope=None)
    assert detail_of(unscoped) is None
    assert detail_of(unscoped, expected=replace(STATEMENT, scope="0" * 32)) is None


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-1, Detail.NOT_YET_VALID),
        (0, None),
        (899, None),
        (900, Detail.EXPIRED),
        (901, Detail.EXPIRED),
    ],
)
def test_a_token_lives_a_quarter_of_an_hour(seconds: int, expected: Detail | None) -> None:
    """A token counts from its first second up to, not at, its last."""
    assert expected is detail_of(GOOD, now=NOW + timedelta(seconds=seconds))


def test_a_skew_helps_a_fast_clock_and_extends_nothing() -> None:
    """A signer's clock may be ahead by the skew; an expired token stays expired."""
    early, late = NOW - 30 * SECOND, NOW + MAX_LIFETIME + SECOND
    assert detail_of(GOOD, now=early, skew=30 * SECOND) is None
    assert Detail.NOT_YET_VALID is detail_of(GOOD, now=early, skew=29 * SECOND)
    assert Detail.EXPIRED is detail_of(GOOD, now=late, skew=30 * SECOND)


@pytest.mark.parametrize(
    "times",
    [
        {"exp": 901},
        {"iat": -1},
        {"nbf": -1},
        {"exp": 0},
        {"exp": -1},
        {"iat": -901, "nbf": -901, "exp": 1},
    ],
)
def test_a_token_cannot_give_itself_more_time(times: dict[str, int]) -> None:
    """A validly signed lifetime that is over the cap, empty or negative is refused."""
    stamp = int(NOW.timestamp())
    changes = {name: stamp + seconds for name, seconds in times.items()}
    assert Detail.BAD_LIFETIME is detail_of(sign(claims().model_copy(update=changes), ALICE))


def test_an_approver_signs_with_a_name_of_their_own() -> None:
    """Nobody signs for another person, neither in claims nor in a statement."""
    with pytest.raises(SigningError):
        sign(claims(ALICE), BOB)
    with pytest.raises(SigningError):
        new_claims(STATEMENT, BOB, NOW)
    assert Detail.OTHER_SUBJECT is detail_of(forged(payload=changed_payload(sub="1002")))


@pytest.mark.parametrize("lifetime", [timedelta(0), -SECOND, MAX_LIFETIME + SECOND])
def test_no_longer_life_can_be_asked_for(lifetime: timedelta) -> None:
    """A lifetime is from a second to the cap."""
    with pytest.raises(SigningError):
        new_claims(STATEMENT, ALICE, NOW, lifetime=lifetime)


@pytest.mark.parametrize(
    "change", [{"workflow_id": ""}, {"operation_id": "x" * 201}, {"digest": "sha256:c4n4ry"}]
)
def test_what_no_verifier_would_read_is_not_signed(change: dict[str, str]) -> None:
    """A statement that cannot be said fails when it is signed, and its text is not repeated."""
    with pytest.raises(SigningError) as failed:
        new_claims(replace(STATEMENT, **change), ALICE, NOW)  # type: ignore[arg-type] # a table holds any field's value
    assert "c4n4ry" not in str(failed.value)


def test_a_token_that_could_not_be_sent_is_not_made() -> None:
    """A run's name may be so long, once escaped, that the token would be refused for its size."""
    with pytest.raises(SigningError):
        token(workflow_id="é" * 1_000, operation_id="é" * 200)


def test_a_token_is_small() -> None:
    """A token of ordinary names fits into a command line and a signal with room to spare."""
    assert len(GOOD) < 1_024


def test_each_refusal_has_a_code() -> None:
    """Every detail maps to one of the codes that any review is answered with."""
    assert set(Detail) == set(CODE_OF)
    assert set(CODE_OF.values()) == set(RefusalCode)


def test_refusals_tell_nothing_of_a_token() -> None:
    """No part of a token or key is in an answer, not even in the verified one."""
    bad = forged(kid="../../c4n4ry")
    shown = f"{detail_of(bad)!r} {counts(GOOD)!r} {ALICE!r} {RING!r}"
    assert "c4n4ry" not in shown
    assert not any(part in shown for part in GOOD.split("."))
    assert claims().jti not in shown
