"""A token is written in one way only; whatever else is signed, and how well, is refused."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest

from tests.unit.signing.makers import (
    ALICE,
    ALICE_ENTRY,
    BOB,
    NOW,
    STATEMENT,
    changed_payload,
    detail_of,
    encoded,
    forged,
    payload_bytes,
    token,
)
from triage.signing.compact import MAX_TOKEN_BYTES, TOKEN_TYPE
from triage.signing.refusals import Detail

GOOD = token()
HEADER = json.dumps({"kid": ALICE.kid, "alg": "Ed25519", "typ": TOKEN_TYPE}).encode()


def _hmac_with_the_public_key() -> str:
    header = json.dumps({"alg": "HS256", "kid": ALICE.kid, "typ": TOKEN_TYPE}).encode()
    body = f"{encoded(header)}.{encoded(payload_bytes())}"
    secret = ALICE_ENTRY.public_key.x.encode()
    return f"{body}.{encoded(hmac.digest(secret, body.encode(), hashlib.sha512))}"


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (forged(alg="none"), Detail.WRONG_ALGORITHM),
        (forged(alg="None"), Detail.WRONG_ALGORITHM),
        (forged(alg="HS256"), Detail.WRONG_ALGORITHM),
        (forged(alg="RS256"), Detail.WRONG_ALGORITHM),
        (forged(alg="EdDSA"), Detail.WRONG_ALGORITHM),
        (forged(alg="ed25519"), Detail.WRONG_ALGORITHM),
        (forged(alg=["Ed25519"]), Detail.WRONG_ALGORITHM),
        (forged(alg=None), Detail.WRONG_ALGORITHM),
        (_hmac_with_the_public_key(), Detail.WRONG_ALGORITHM),
        (forged(typ="JWT"), Detail.WRONG_TYPE),
        (forged(crit=["exp"]), Detail.BAD_HEADER),
        (forged(crit=[]), Detail.BAD_HEADER),
        (forged(b64=False, crit=["b64"]), Detail.BAD_HEADER),
        (forged(jwk=ALICE_ENTRY.public_key.model_dump()), Detail.BAD_HEADER),
        (forged(jku="https://keys.example/ring.json"), Detail.BAD_HEADER),
        (forged(x5u="https://keys.example/chain.pem"), Detail.BAD_HEADER),
        (forged(x5c=["MIIB"]), Detail.BAD_HEADER),
        (forged(zip="DEF"), Detail.BAD_HEADER),
        (forged({"alg": "Ed25519", "kid": ALICE.kid}), Detail.BAD_HEADER),
        (forged([1]), Detail.BAD_HEADER),
        (forged(b"{"), Detail.BAD_HEADER),
        (forged(b"\xff"), Detail.BAD_HEADER),
        (forged(b'{"alg":"none","alg":"Ed25519"}'), Detail.BAD_HEADER),
        (forged(kid=""), Detail.BAD_KEY_ID),
        (forged(kid=7), Detail.BAD_KEY_ID),
        (forged(kid=ALICE.kid + "\n"), Detail.BAD_KEY_ID),
        (forged(kid="x" * 65), Detail.BAD_KEY_ID),
        (forged(kid="a/b"), Detail.BAD_KEY_ID),
        (forged(kid="x" * 64), Detail.UNKNOWN_KEY),
        (forged(kid=ALICE.kid, key=BOB), Detail.BAD_SIGNATURE),
        (forged(HEADER + b" " * 600), Detail.BAD_SIGNATURE),
        (forged(HEADER), None),
    ],
)
def test_a_header_has_one_form(text: str, detail: Detail | None) -> None:
    """No other algorithm, type or key, no key of the token's own, no extension."""
    assert detail is detail_of(text)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        payload_bytes()[:-1] + b',"sub":"1001"}',
        payload_bytes()[:-1] + b',"verdict":"approve"}',
        changed_payload(admin=True),
        changed_payload(iat=float(NOW.timestamp())),
        changed_payload(exp=True),
        changed_payload(exp=10**30),
        changed_payload(exp=str(int(NOW.timestamp()) + 60)),
        changed_payload(state_version="3"),
        changed_payload(state_version=3.0),
        changed_payload(verdict="APPROVE"),
        changed_payload(aud=[STATEMENT.audience]),
        changed_payload(jti="short"),
        changed_payload(jti=None),
        changed_payload(operation_digest="sha256:" + "A" * 64),
    ],
)
def test_claims_are_read_strictly(payload: bytes) -> None:
    """A good signature does not excuse a payload that is not exactly ours."""
    expected = Detail.BAD_CLAIMS if payload else Detail.NOT_COMPACT
    assert expected is detail_of(forged(payload=payload))


@pytest.mark.parametrize("extra", ["=", "==", "\n", " ", ".", "A", "+", "/", "\x00", "é", "\udc80"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_token_is_written_in_one_way(extra: str, place: int) -> None:
    """Padding, blanks, other alphabets or a further part never verify."""
    parts = GOOD.split(".")
    for changed in (parts[place] + extra, extra + parts[place]):
        text = ".".join(changed if index == place else part for index, part in enumerate(parts))
        assert detail_of(text) is not None


def test_unused_bits_are_zero() -> None:
    """The last character of a signature has four bits that mean nothing, and they must be zero."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    value = alphabet.index(GOOD[-1])
    others = [GOOD[:-1] + alphabet[value ^ bits] for bits in range(1, 16)]
    assert {Detail.NOT_CANONICAL} == {detail_of(other) for other in others}


def test_a_large_token_is_not_even_read() -> None:
    """Over 8 KiB nothing is decoded, whatever it holds."""
    assert Detail.TOO_LARGE is detail_of("A" * (MAX_TOKEN_BYTES + 1))
    assert Detail.NOT_COMPACT is detail_of("A" * MAX_TOKEN_BYTES)
