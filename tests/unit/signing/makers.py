"""People with keys, what they say, and tokens that no honest program would make."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from triage.contracts.approval import Verdict
from triage.contracts.canonical import canonical_json, digest_of
from triage.signing.compact import TOKEN_TYPE
from triage.signing.keys import KeyEntry, Keyring, PrivateKey, SigningKey, new_key, signing_key
from triage.signing.refusals import Detail, Refusal
from triage.signing.tokens import (
    Claims,
    Statement,
    VerifiedApproval,
    audience,
    new_claims,
    sign,
    verify,
)

NOW: Final = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
LONG_AGO: Final = NOW - timedelta(days=30)
SECOND: Final = timedelta(seconds=1)

STATEMENT: Final = Statement(
    audience=audience("default"),
    workflow_id="triage-101",
    operation_id="op-105",
    version=3,
    digest=digest_of(["apply_labels", "ISSUE-101", ["bug"]]),
    verdict=Verdict.APPROVE,
    approver="alice",
    scope="5c0f" * 8,
)


def person(approver: str, subject: str | None = None) -> tuple[PrivateKey, SigningKey, KeyEntry]:
    """Give somebody a key that has counted for a month."""
    private, entry = new_key(subject or f"id-of-{approver}", LONG_AGO, approver)
    return private, signing_key(private), entry


ALICE_PRIVATE, ALICE, ALICE_ENTRY = person("alice", "1001")
BOB_PRIVATE, BOB, BOB_ENTRY = person("bob", "1002")
RING: Final = Keyring.of([ALICE_ENTRY, BOB_ENTRY])


def claims(
    key: SigningKey = ALICE,
    now: datetime = NOW,
    **changes: Any,  # noqa: ANN401 - any field's value
) -> Claims:
    """What `key`'s owner says of `STATEMENT`, with some claims changed."""
    said = new_claims(replace(STATEMENT, approver=key.approver), key, now)
    return said.model_copy(update=changes)


def token(
    key: SigningKey = ALICE,
    now: datetime = NOW,
    **changes: Any,  # noqa: ANN401 - any field's value
) -> str:
    """The signed form of `claims`."""
    return sign(claims(key, now, **changes), key)


def detail_of(
    text: str,
    keyring: Keyring = RING,
    expected: Statement = STATEMENT,
    now: datetime = NOW,
    skew: timedelta = timedelta(0),
) -> Detail | None:
    """Why a token is refused, or None if it counts."""
    answer = verify(text, keyring, expected, now, skew=skew)
    return answer.detail if isinstance(answer, Refusal) else None


def counts(text: str, keyring: Keyring = RING) -> VerifiedApproval:
    """See that a token counts now, and return what was verified."""
    answer = verify(text, keyring, STATEMENT, NOW)
    assert isinstance(answer, VerifiedApproval), answer
    return answer


def encoded(data: bytes) -> str:
    """Write bytes as a part of a token."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def payload_bytes() -> bytes:
    """The payload of an honest token."""
    return canonical_json(claims().model_dump(mode="json"))


def changed_payload(**changes: object) -> bytes:
    """The payload of an honest token with some of its JSON members changed or added."""
    return json.dumps(json.loads(payload_bytes()) | changes).encode()


def forged(
    header: object = None,
    payload: bytes | None = None,
    key: SigningKey = ALICE,
    **header_changes: Any,  # noqa: ANN401 - any JSON value
) -> str:
    """Sign any header over any payload, both good unless given; bytes are taken as they are."""
    good = {"alg": "Ed25519", "kid": key.kid, "typ": TOKEN_TYPE} | header_changes
    head = header if isinstance(header, bytes) else json.dumps(header or good).encode()
    body = f"{encoded(head)}.{encoded(payload_bytes() if payload is None else payload)}"
    private = key.jwk.private_key
    assert isinstance(private, Ed25519PrivateKey)
    return f"{body}.{encoded(private.sign(body.encode()))}"
