"""What a person sends to decide on a pending operation, and what they are told.

The same envelope arrives as an `approve` or `reject` signal and, with its verdict, as the
`review` update.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, JsonValue, StringConstraints, ValidationError

from triage.contracts.base import (
    MAX_REASON_CHARS,
    MAX_TOKEN_CHARS,
    Contract,
    ContractError,
    Name,
    StateVersion,
    explain,
)
from triage.contracts.canonical import canonical_json, clean
from triage.contracts.logins import is_visible


class Verdict(StrEnum):
    """A person's answer."""

    APPROVE = "approve"
    REJECT = "reject"


class RefusalCode(StrEnum):
    """Why a review did not count."""

    NOT_PENDING = "not_pending"
    STALE_VERSION = "stale_version"
    DIGEST_MISMATCH = "digest_mismatch"
    EXPIRED = "expired"
    DUPLICATE = "duplicate"
    UNAUTHORISED = "unauthorised"
    MALFORMED = "malformed"


REFUSAL_MEANING: Final[dict[RefusalCode, str]] = {
    RefusalCode.NOT_PENDING: "the run is not waiting for this operation",
    RefusalCode.STALE_VERSION: "the operation is pending at another version; look at it again",
    RefusalCode.DIGEST_MISMATCH: "the operation is not the one that was reviewed",
    RefusalCode.EXPIRED: "the time to decide is over",
    RefusalCode.DUPLICATE: "this operation has been decided already",
    RefusalCode.UNAUTHORISED: "this approver may not decide on this operation",
    RefusalCode.MALFORMED: "the message is not a review envelope",
}

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]


MAX_REVIEW_BYTES: Final = 65_536
"""How large a review may be; an envelope with everything in it takes half of it."""


class Envelope(Contract):
    """An approval or a rejection of one operation at one version."""

    operation_id: Name
    version: StateVersion
    approver: Name
    digest: Digest | None = None
    token: Annotated[str | None, Field(max_length=MAX_TOKEN_CHARS, repr=False)] = None
    note: Annotated[str, Field(max_length=MAX_REASON_CHARS)] | None = None


class Review(Envelope):
    """The envelope together with its verdict: the argument of the `review` update."""

    verdict: Verdict


class ReviewAnswer(Contract):
    """The answer of the `review` update; `code` is ``accepted`` or a refusal's code.

    `reason` says in a sentence why a review was refused.
    """

    accepted: bool
    code: str
    version: int
    reason: str | None = None


def parse_review(value: JsonValue, verdict: Verdict | None) -> Review:
    """Read an envelope; `verdict` is given by the signal's name, or None for the update.

    Raises:
        ContractError: the message names the field and quotes nothing.
    """
    if not isinstance(value, dict):
        raise ContractError("review must be a JSON object")
    if verdict is not None and "verdict" in value:
        raise ContractError("review.verdict: unexpected field")
    filled = value if verdict is None else {**value, "verdict": verdict.value}
    try:
        review = Review.model_validate_json(canonical_json(clean(filled, "review")))
    except ValidationError as error:
        raise ContractError(explain(error, "review", Review)) from None
    if not is_visible(review.approver):
        raise ContractError("review.approver: must not be blank")
    return review
