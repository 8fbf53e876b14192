"""Signed approvals: what a token says, how it is signed and everything it is held to.

Why it exists: whoever can send a signal can send any name with it. A token binds one answer of one
person to one operation at one version of one run, for minutes and for one use. Pure: keys, time and
what is expected come in, a verified approval or the reason against it comes out. No answer and no
error holds any text of a token.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from triage.contracts.approval import Digest, Verdict
from triage.contracts.base import (
    MAX_WORKFLOW_ID_CHARS,
    Contract,
    ContractError,
    Name,
    StateVersion,
    explain,
)
from triage.contracts.canonical import canonical_json, digest_of, parse_json
from triage.signing.compact import MAX_TOKEN_BYTES, TOKEN_TYPE, read_compact
from triage.signing.keys import (
    ALGORITHM,
    KeyEntry,
    Keyring,
    PersonName,
    SigningError,
    SigningKey,
    TrackerName,
    verification_key,
)
from triage.signing.refusals import Detail, Refusal, RefusedTokenError

ISSUER: Final = "bounded-triage"
MAX_LIFETIME: Final = timedelta(minutes=15)
_NO_SKEW: Final = timedelta(0)

# Seconds since 1970, to the end of the year 9999.
NumericDate = Annotated[int, Field(ge=0, le=253_402_300_799)]
SingleUseId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{22,64}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_WORKFLOW_ID_CHARS)]


class Vouched(Contract):
    """Who somebody is at a tracker, by the word of the service that signs.

    Attributes:
        tracker: which.
        login: the name there, which is the approver's; the stable id there is the token's subject.
    """

    tracker: TrackerName
    login: PersonName


class Claims(Contract):
    """The payload of a token: registered claims (RFC 7519) and what the approval is about."""

    model_config = ConfigDict(hide_input_in_errors=True)

    iss: str
    aud: Text
    sub: PersonName
    jti: SingleUseId
    iat: NumericDate
    nbf: NumericDate
    exp: NumericDate
    workflow_id: Text
    scope: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] | None = None
    operation_id: Name
    operation_digest: Digest
    state_version: StateVersion
    verdict: Verdict
    vouched: Vouched | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a person says, when signing; what must have been said, when verifying.

    Attributes:
        audience: where it is meant to count; see `audience`.
        workflow_id: the run that asks.
        operation_id: the pending operation.
        version: the run's version at which it is pending.
        digest: over everything that the reviewer saw: the approval digest.
        verdict: the answer.
        approver: who answers, by the name that runs show.
        scope: the run's scope. A token need not name one; one that does counts only there.
    """

    audience: str
    workflow_id: str
    operation_id: str
    version: int
    digest: str
    verdict: Verdict
    approver: str
    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedApproval:
    """A token that counts.

    Attributes:
        subject: the stable id of who signed.
        approver: the name of who signed.
        kid: the key.
        verdict: the answer.
        token_id: a digest that stands for this very token; allow it once.
        issued_at: when the token says it was signed.
        expires_at: from when on it is refused.
        vouched: who this is at a tracker, if a service said it; their rights there have to be
            looked at before the approval is used.
    """

    subject: str
    approver: str
    kid: str
    verdict: Verdict
    token_id: str
    issued_at: datetime
    expires_at: datetime
    vouched: Vouched | None = None


def audience(namespace: str) -> str:
    """Return whom a token is for: approvals in one Temporal namespace."""
    return f"{ISSUER}/approve:{namespace}"


def new_claims(
    statement: Statement,
    key: SigningKey,
    now: datetime,
    *,
    lifetime: timedelta = MAX_LIFETIME,
    jti: str | None = None,
) -> Claims:
    """Say `statement` as the owner of `key`, from `now` on.

    Args:
        statement: what is said.
        key: who says it; the statement's approver is the key's owner.
        now: the signer's time; whole seconds count.
        lifetime: from one second to `MAX_LIFETIME`.
        jti: the single-use id; a random one of 128 bits unless given.

    Raises:
        SigningError: one of the arguments does not fit; the message names it.
    """
    if statement.approver != key.approver:
        raise SigningError("approver: is not the owner of this key")
    return _new_claims(statement, key.subject, now, lifetime, jti, None)


def token_id_of(kid: str, jti: str) -> str:
    """Return what stands for the token of a key with this single-use id, wherever it is stored."""
    return digest_of([kid, jti])


def vouched_claims(
    statement: Statement,
    tracker: str,
    person_id: str,
    now: datetime,
    *,
    lifetime: timedelta = MAX_LIFETIME,
    jti: str | None = None,
) -> Claims:
    """Say `statement` for somebody whom a service has seen at a tracker.

    Only a key that the ring lets vouch for that tracker can sign it so that it counts.

    Args:
        statement: what is said; its approver is the login at the tracker.
        tracker: where.
        person_id: the stable id there.
        now: the signer's time; whole seconds count.
        lifetime: from one second to `MAX_LIFETIME`.
        jti: the single-use id; the same one for the same act, so that it counts once.

    Raises:
        SigningError: one of the arguments does not fit; the message names it.
    """
    try:
        vouched = Vouched(tracker=tracker, login=statement.approver)
    except ValidationError as error:
        raise SigningError(explain(error, "vouched", Vouched)) from None
    return _new_claims(statement, person_id, now, lifetime, jti, vouched)


def _new_claims(
    statement: Statement,
    subject: str,
    now: datetime,
    lifetime: timedelta,
    jti: str | None,
    vouched: Vouched | None,
) -> Claims:
    if not timedelta(seconds=1) <= lifetime <= MAX_LIFETIME:
        raise SigningError(f"lifetime: must be from 1 second to {MAX_LIFETIME}")
    issued = int(now.timestamp())
    try:
        return Claims(
            iss=ISSUER,
            aud=statement.audience,
            sub=subject,
            jti=jti or secrets.token_urlsafe(16),
            iat=issued,
            nbf=issued,
            exp=issued + int(lifetime.total_seconds()),
            workflow_id=statement.workflow_id,
            scope=statement.scope,
            operation_id=statement.operation_id,
            operation_digest=statement.digest,
            state_version=statement.version,
            verdict=statement.verdict,
            vouched=vouched,
        )
    except ValidationError as error:
        raise SigningError(explain(error, "claims", Claims)) from None


def sign(claims: Claims, key: SigningKey) -> str:
    """Return the token that says `claims`.

    Raises:
        SigningError: they are said in another's name, or the token would be too large to send.
    """
    if claims.vouched is None and claims.sub != key.subject:
        raise SigningError("sub: is not the owner of this key")
    from triage.signing import jose  # noqa: PLC0415 - loaded with the first key

    header = {"alg": ALGORITHM, "kid": key.kid, "typ": TOKEN_TYPE}
    payload = canonical_json(claims.model_dump(mode="json", exclude_none=True))
    token = jose.serialised(header, payload, key.jwk)
    if len(token) > MAX_TOKEN_BYTES:
        raise SigningError(f"token: would have over {MAX_TOKEN_BYTES} bytes")
    return token


def verify(
    token: str,
    keyring: Keyring,
    expected: Statement,
    now: datetime,
    *,
    skew: timedelta = _NO_SKEW,
) -> VerifiedApproval | Refusal:
    """Say whether `token` is exactly `expected`, signed by a key that counts, and valid `now`.

    Args:
        token: what was sent.
        keyring: the keys that count.
        expected: what it must say; its approver must be the owner of the key.
        now: the verifier's time. At the very second of its expiry a token has expired.
        skew: how far a signer's clock may be ahead. Nothing extends an expiry.

    Returns:
        The approval, to be used once, or the first reason against it. Never raises.
    """
    try:
        return _verified(token, keyring, expected, now, skew)
    except RefusedTokenError as error:
        return Refusal(error.detail)


def _verified(
    token: str, keyring: Keyring, expected: Statement, now: datetime, skew: timedelta
) -> VerifiedApproval:
    kid = read_compact(token)
    entry = keyring.find(kid)
    if entry is None:
        raise RefusedTokenError(Detail.UNKNOWN_KEY)
    claims = _claims(_signed_payload(token, entry))
    _check_parties(claims, entry, expected)
    _check_times(claims, entry, now.timestamp(), skew.total_seconds())
    _check_bindings(claims, expected)
    return VerifiedApproval(
        subject=claims.sub,
        approver=expected.approver,
        kid=kid,
        verdict=claims.verdict,
        token_id=token_id_of(kid, claims.jti),
        issued_at=datetime.fromtimestamp(claims.iat, UTC),
        expires_at=datetime.fromtimestamp(claims.exp, UTC),
        vouched=claims.vouched,
    )


def _signed_payload(token: str, entry: KeyEntry) -> bytes:
    from triage.signing import jose  # noqa: PLC0415 - loaded with the first key

    payload = jose.signed_payload(token, verification_key(entry))
    if payload is None:
        raise RefusedTokenError(Detail.BAD_SIGNATURE)
    return payload


def _claims(payload: bytes) -> Claims:
    try:
        return Claims.model_validate_json(canonical_json(parse_json(payload, "claims")))
    except (ContractError, ValidationError):
        raise RefusedTokenError(Detail.BAD_CLAIMS) from None


def _check_parties(claims: Claims, entry: KeyEntry, expected: Statement) -> None:
    _must(claims.iss == ISSUER, Detail.OTHER_ISSUER)
    _must(claims.aud == expected.audience, Detail.OTHER_AUDIENCE)
    if entry.vouches_for:
        _check_vouched(claims.vouched, entry, expected)
        return
    _must(claims.vouched is None, Detail.MAY_NOT_VOUCH)
    _must(claims.sub == entry.subject, Detail.OTHER_SUBJECT)
    _must(entry.approver == expected.approver, Detail.OTHER_APPROVER)


def _check_vouched(vouched: Vouched | None, entry: KeyEntry, expected: Statement) -> None:
    """See that a service speaks for somebody else, at a tracker that it may speak for."""
    _must(vouched is not None and vouched.tracker in entry.vouches_for, Detail.NOT_VOUCHED)
    _must(vouched is not None and vouched.login == expected.approver, Detail.OTHER_APPROVER)


def _check_times(claims: Claims, entry: KeyEntry, now: float, skew: float) -> None:
    begin = min(claims.iat, claims.nbf)
    _must(begin < claims.exp <= begin + MAX_LIFETIME.total_seconds(), Detail.BAD_LIFETIME)
    _must(now < claims.exp, Detail.EXPIRED)
    _must(max(claims.iat, claims.nbf) <= now + skew, Detail.NOT_YET_VALID)
    _must(claims.iat >= entry.not_before.timestamp(), Detail.KEY_NOT_YET_USED)
    retired = entry.retired_at
    _must(retired is None or claims.iat < retired.timestamp(), Detail.KEY_RETIRED)


def _check_bindings(claims: Claims, expected: Statement) -> None:
    _must(claims.workflow_id == expected.workflow_id, Detail.OTHER_WORKFLOW)
    _must(claims.scope in {None, expected.scope}, Detail.OTHER_RUN)
    _must(claims.operation_id == expected.operation_id, Detail.OTHER_OPERATION)
    _must(claims.state_version == expected.version, Detail.OTHER_VERSION)
    _must(claims.operation_digest == expected.digest, Detail.OTHER_DIGEST)
    _must(claims.verdict == expected.verdict, Detail.OTHER_VERDICT)


def _must(holds: bool, detail: Detail) -> None:  # noqa: FBT001 - a condition and its name
    if not holds:
        raise RefusedTokenError(detail)
