"""Why a signed approval does not count: a precise detail, and the code that the sender is told.

Why it exists: an operator needs to know which check failed; a sender gets one of the codes that
every review is answered with. Both are closed sets, so they may be logged and kept anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from triage.contracts.approval import RefusalCode


class Detail(StrEnum):
    """The check that failed."""

    TOO_LARGE = "too_large"
    NOT_COMPACT = "not_compact"
    NOT_CANONICAL = "not_canonical"
    BAD_HEADER = "bad_header"
    WRONG_ALGORITHM = "wrong_algorithm"
    WRONG_TYPE = "wrong_type"
    BAD_KEY_ID = "bad_key_id"
    BAD_CLAIMS = "bad_claims"
    BAD_LIFETIME = "bad_lifetime"
    UNKNOWN_KEY = "unknown_key"
    BAD_SIGNATURE = "bad_signature"
    OTHER_ISSUER = "other_issuer"
    OTHER_AUDIENCE = "other_audience"
    OTHER_SUBJECT = "other_subject"
    OTHER_APPROVER = "other_approver"
    NOT_VOUCHED = "not_vouched"
    """A service's key, and it does not say for whom, or may not for that tracker."""
    MAY_NOT_VOUCH = "may_not_vouch"
    """It says who somebody is, and the key is a person's own."""
    NOT_YET_VALID = "not_yet_valid"
    EXPIRED = "expired"
    KEY_NOT_YET_USED = "key_not_yet_used"
    KEY_RETIRED = "key_retired"
    OTHER_WORKFLOW = "other_workflow"
    OTHER_RUN = "other_run"
    OTHER_OPERATION = "other_operation"
    OTHER_VERSION = "other_version"
    OTHER_DIGEST = "other_digest"
    OTHER_VERDICT = "other_verdict"
    KEYRING_UNUSABLE = "keyring_unusable"
    TOKEN_REPLAYED = "token_replayed"  # noqa: S105 - a code, not a secret
    DECIDED_OTHERWISE = "decided_otherwise"
    REVOKED = "revoked"
    SAME_PERSON = "same_person"
    BARRED_PERSON = "barred_person"


_C = RefusalCode

CODE_OF: Final[dict[Detail, RefusalCode]] = {
    Detail.TOO_LARGE: _C.MALFORMED,
    Detail.NOT_COMPACT: _C.MALFORMED,
    Detail.NOT_CANONICAL: _C.MALFORMED,
    Detail.BAD_HEADER: _C.MALFORMED,
    Detail.WRONG_ALGORITHM: _C.MALFORMED,
    Detail.WRONG_TYPE: _C.MALFORMED,
    Detail.BAD_KEY_ID: _C.MALFORMED,
    Detail.BAD_CLAIMS: _C.MALFORMED,
    Detail.BAD_LIFETIME: _C.MALFORMED,
    Detail.UNKNOWN_KEY: _C.UNAUTHORISED,
    Detail.BAD_SIGNATURE: _C.UNAUTHORISED,
    Detail.OTHER_ISSUER: _C.UNAUTHORISED,
    Detail.OTHER_AUDIENCE: _C.UNAUTHORISED,
    Detail.OTHER_SUBJECT: _C.UNAUTHORISED,
    Detail.OTHER_APPROVER: _C.UNAUTHORISED,
    Detail.NOT_VOUCHED: _C.UNAUTHORISED,
    Detail.MAY_NOT_VOUCH: _C.UNAUTHORISED,
    Detail.NOT_YET_VALID: _C.UNAUTHORISED,
    Detail.EXPIRED: _C.EXPIRED,
    Detail.KEY_NOT_YET_USED: _C.UNAUTHORISED,
    Detail.KEY_RETIRED: _C.UNAUTHORISED,
    Detail.OTHER_WORKFLOW: _C.NOT_PENDING,
    Detail.OTHER_RUN: _C.NOT_PENDING,
    Detail.OTHER_OPERATION: _C.NOT_PENDING,
    Detail.OTHER_VERSION: _C.STALE_VERSION,
    Detail.OTHER_DIGEST: _C.DIGEST_MISMATCH,
    Detail.OTHER_VERDICT: _C.UNAUTHORISED,
    Detail.KEYRING_UNUSABLE: _C.UNAUTHORISED,
    Detail.TOKEN_REPLAYED: _C.DUPLICATE,
    Detail.DECIDED_OTHERWISE: _C.DUPLICATE,
    Detail.REVOKED: _C.UNAUTHORISED,
    Detail.SAME_PERSON: _C.DUPLICATE,
    Detail.BARRED_PERSON: _C.UNAUTHORISED,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A signed approval that does not count."""

    detail: Detail

    @property
    def code(self) -> RefusalCode:
        """What the sender is told."""
        return CODE_OF[self.detail]


class RefusedTokenError(Exception):
    """Ends a verification inside this package; `triage.signing.tokens.verify` translates it."""

    def __init__(self, detail: Detail) -> None:
        super().__init__(detail)
        self.detail = detail
