"""The approval envelope, as a signal and as the update's argument."""

from __future__ import annotations

import pytest
from pydantic import JsonValue, ValidationError

from tests.unit.contracts.strategies import short
from triage.contracts.approval import (
    REFUSAL_MEANING,
    RefusalCode,
    ReviewAnswer,
    Verdict,
    parse_review,
)
from triage.contracts.base import MAX_NAME_CHARS, MAX_REASON_CHARS, ContractError

DIGEST = "sha256:" + "0123456789abcdef" * 4
LEAST: dict[str, JsonValue] = {"operation_id": "op-105", "version": 3, "approver": "ann"}
FULL: dict[str, JsonValue] = {**LEAST, "digest": DIGEST, "token": "t.o.k", "note": "looks right"}
NOT_TEXT: list[JsonValue] = [True, 1, 1.5, [], {}]
GOOD: dict[str, list[JsonValue]] = {
    "operation_id": ["o", " ", "o" * MAX_NAME_CHARS],
    "version": [0, 1, 2**53],
    "approver": ["a", "@ann", "a" * MAX_NAME_CHARS],
    "digest": [None, DIGEST],
    "token": [None, "", "t" * 8_192],
    "note": [None, "", "n" * MAX_REASON_CHARS],
}
BAD: dict[str, list[JsonValue]] = {
    "operation_id": [*NOT_TEXT, None, "", "o" * (MAX_NAME_CHARS + 1)],
    "version": [True, False, None, 3.0, 3.5, "3", -1, [], {}, 2**53 + 1, 10**400],
    "approver": [*NOT_TEXT, None, "", " ", "\t\n\u00a0", "a" * (MAX_NAME_CHARS + 1)],
    "digest": [
        *NOT_TEXT,
        "",
        DIGEST.upper(),
        DIGEST[:-1],
        DIGEST + "0",
        DIGEST + "\n",
        DIGEST.removeprefix("sha256:"),
        "sha512:" + "0" * 64,
        "sha256:" + "g" * 64,
    ],
    "token": [*NOT_TEXT, "t" * 8_193],
    "note": [*NOT_TEXT, "n" * (MAX_REASON_CHARS + 1)],
}


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("value", [LEAST, FULL], ids=["least", "full"])
def test_signal_and_update_read_the_same_envelope(
    value: dict[str, JsonValue], verdict: Verdict
) -> None:
    """The verdict comes from the signal's name or from the update's own field, to the same end."""
    by_signal = parse_review(value, verdict)
    by_update = parse_review({**value, "verdict": verdict.value}, None)
    assert by_signal == by_update
    assert {**value, "verdict": verdict.value} == by_signal.model_dump(
        mode="json", exclude_unset=True
    )


@pytest.mark.parametrize("verdict", ["approve", "reject", "APPROVE", None])
def test_a_signal_carries_no_verdict_of_its_own(verdict: JsonValue) -> None:
    """An `approve` signal that says ``reject`` inside is malformed, not guessed at."""
    with pytest.raises(ContractError, match=r"^review\.verdict: unexpected field$"):
        parse_review({**LEAST, "verdict": verdict}, Verdict.APPROVE)


@pytest.mark.parametrize("verdict", [None, "", "Approve", "approved", True, 1, ["approve"]])
def test_an_update_says_approve_or_reject(verdict: JsonValue) -> None:
    """The update's verdict is one of two words."""
    with pytest.raises(ContractError, match=r"^review\.verdict: "):
        parse_review({**LEAST, "verdict": verdict}, None)


def test_an_update_without_verdict_is_refused() -> None:
    """An update that decides nothing is malformed."""
    with pytest.raises(ContractError, match=r"^review\.verdict: is missing$"):
        parse_review(LEAST, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in GOOD.items() for value in values],
    ids=short,
)
def test_each_field_takes_its_own_values(name: str, value: JsonValue) -> None:
    """Every field is taken up to its limit and keeps its value."""
    review = parse_review({**LEAST, name: value}, Verdict.APPROVE)
    assert value == getattr(review, name)


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD.items() for value in values],
    ids=short,
)
def test_each_field_refuses_other_values(name: str, value: JsonValue) -> None:
    """A wrong type, a blank approver, an odd digest or too much text is malformed."""
    with pytest.raises(ContractError, match=rf"^review\.{name}: "):
        parse_review({**FULL, name: value}, Verdict.REJECT)


@pytest.mark.parametrize("name", LEAST)
def test_operation_version_and_approver_are_required(name: str) -> None:
    """An approval names what, at which version, and who."""
    value = {field: item for field, item in FULL.items() if field != name}
    with pytest.raises(ContractError, match=rf"^review\.{name}: is missing$"):
        parse_review(value, Verdict.APPROVE)


@pytest.mark.parametrize("name", ["extra", "", "Version", "expires_at", "local_trust"])
def test_no_other_field_is_allowed(name: str) -> None:
    """An envelope cannot carry anything that nobody reads."""
    with pytest.raises(ContractError, match="unexpected field"):
        parse_review({**LEAST, name: "x"}, Verdict.APPROVE)


@pytest.mark.parametrize("value", [None, True, 3, 1.5, "", "op-105", [], [LEAST]], ids=short)
@pytest.mark.parametrize("verdict", [None, Verdict.APPROVE])
def test_only_an_object_is_an_envelope(value: JsonValue, verdict: Verdict | None) -> None:
    """Anything but a JSON object is malformed."""
    with pytest.raises(ContractError, match=r"^review must be a JSON object$"):
        parse_review(value, verdict)


def test_numbers_that_json_cannot_hold_are_refused() -> None:
    """A decoded infinity is malformed, never an error of the run."""
    with pytest.raises(ContractError, match="NaN and infinity"):
        parse_review({**LEAST, "version": float("inf")}, Verdict.APPROVE)


def test_every_refusal_has_a_code_and_a_meaning() -> None:
    """The seven codes are public, and each says in words what it means."""
    codes = [
        "not_pending",
        "stale_version",
        "digest_mismatch",
        "expired",
        "duplicate",
        "unauthorised",
        "malformed",
    ]
    assert codes == [code.value for code in RefusalCode]
    assert set(RefusalCode) == set(REFUSAL_MEANING)
    assert all(REFUSAL_MEANING.values())


def test_an_answer_says_whether_why_and_where() -> None:
    """The update answers whether the review counts, a code, the version, and why not, if so."""
    said = {"accepted": False, "code": "expired", "version": 3, "reason": "it is too late"}
    assert said == ReviewAnswer.model_validate(said).model_dump(mode="json")
    assert ReviewAnswer(accepted=True, code="accepted", version=3).reason is None
    with pytest.raises(ValidationError):
        ReviewAnswer.model_validate({"accepted": 1, "code": "accepted", "version": 3})
