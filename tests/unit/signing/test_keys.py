"""A ring holds public keys that are unique, well-formed and somebody's, and shows no secret."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.contracts.strategies import JSON_VALUES, PROPERTY
from tests.unit.signing.makers import (
    ALICE,
    ALICE_ENTRY,
    ALICE_PRIVATE,
    BOB_ENTRY,
    BOB_PRIVATE,
    NOW,
    RING,
    SECOND,
)
from triage.contracts.canonical import canonical_json
from triage.signing.keys import (
    KeyFileError,
    Keyring,
    KeyringError,
    SigningError,
    new_key,
    signing_key,
)

CANARY = "c4n4ry"


def _entry(**changes: Any) -> bytes:  # noqa: ANN401 - any JSON value
    entry = json.loads(canonical_json(ALICE_ENTRY.model_dump(mode="json"))) | changes
    return json.dumps([entry]).encode()


def test_a_ring_comes_back_as_it_was_written() -> None:
    """Reading what was written gives the same keys, also a retired one."""
    ring = RING.with_retired(ALICE.kid, NOW)
    assert ring == Keyring.parse(ring.to_json())
    assert Keyring() == Keyring.parse(Keyring().to_json())


def test_a_ring_holds_no_private_key() -> None:
    """What goes into the ring does not have the private number."""
    assert ALICE_PRIVATE.d not in RING.to_json().decode()
    assert b'"d"' not in RING.to_json()


def test_a_retirement_is_not_put_off() -> None:
    """Retiring a key again can only bring its end forward."""
    ring = RING.with_retired(ALICE.kid, NOW).with_retired(ALICE.kid, NOW + SECOND)
    assert ring == RING.with_retired(ALICE.kid, NOW)
    assert ring != ring.with_retired(ALICE.kid, NOW - SECOND)


@pytest.mark.parametrize("change", ["with_retired", "without"])
def test_only_a_key_that_is_there_can_go(change: str) -> None:
    """Retiring or removing a key that the ring does not have is an error."""
    arguments = ("unknown", NOW) if change == "with_retired" else ("unknown",)
    with pytest.raises(KeyringError):
        getattr(RING, change)(*arguments)


def test_a_key_stands_there_once() -> None:
    """Neither one id for two keys nor one key for two people."""
    with pytest.raises(KeyringError, match="same id"):
        RING.with_key(BOB_ENTRY.model_copy(update={"kid": ALICE.kid}))
    same = ALICE_ENTRY.model_copy(update={"kid": "another", "subject": "1003"})
    with pytest.raises(KeyringError, match="twice"):
        RING.with_key(same)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"null",
        b"[null]",
        b'[{"kid":"c4n4ry"}]',
        b"\xff c4n4ry",
        b"[" + b"[],".join([b""] * 1_002) + b"[]]",
        _entry(kid="../../dev/null"),
        _entry(kid=f"{CANARY}/x"),
        _entry(kid=""),
        _entry(subject=f"{CANARY} blank"),
        _entry(subject=f"{CANARY}\u202e"),
        _entry(approver=""),
        _entry(not_before="2030-01-01T00:00:00"),
        _entry(not_before=None),
        _entry(retired_at=CANARY),
        _entry(role=CANARY),
        _entry(**{CANARY: 1}),
        _entry(public_key={"kty": "OKP", "crv": "Ed25519", "x": CANARY}),
        _entry(public_key={"kty": "OKP", "crv": "Ed25519", "x": "A" * 42 + "B"}),
        _entry(public_key={"kty": "OKP", "crv": "X25519", "x": "A" * 43}),
        _entry(public_key={"kty": "oct", "k": CANARY}),
        _entry(public_key={"kty": "OKP", "crv": "Ed25519", "x": "A" * 43, "d": CANARY}),
    ],
)
def test_a_bad_ring_is_refused_whole(data: bytes) -> None:
    """One bad entry spoils the ring, and the error quotes none of it."""
    with pytest.raises(KeyringError) as failed:
        Keyring.parse(data)
    assert CANARY not in str(failed.value)
    assert failed.value.__cause__ is None


@PROPERTY
@given(st.lists(JSON_VALUES, max_size=3))
def test_any_json_is_a_ring_or_a_keyring_error(value: list[Any]) -> None:
    """Nothing but a keyring error leaves the reader."""
    with suppress(KeyringError):
        Keyring.parse(canonical_json(value))


def test_a_private_key_is_shown_to_nobody() -> None:
    """Printing a private key, or what signs with it, shows everything but the secret."""
    shown = f"{ALICE_PRIVATE!r} {ALICE_PRIVATE} {ALICE!r} {signing_key(ALICE_PRIVATE)}"
    assert ALICE_PRIVATE.d not in shown
    assert "1001" in shown


def test_a_pair_belongs_together() -> None:
    """A private key under another one's public number is refused without showing either."""
    mixed = ALICE_PRIVATE.model_copy(update={"x": BOB_PRIVATE.x})
    with pytest.raises(KeyFileError) as failed:
        signing_key(mixed)
    assert ALICE_PRIVATE.d not in str(failed.value)


def test_a_new_key_is_its_owners_from_now_on() -> None:
    """The name defaults to the id, two keys never share an id, and the id fits in a ring."""
    private, entry = new_key("1003", NOW + timedelta(microseconds=5))
    other, _ = new_key("1003", NOW)
    assert ("1003", "1003", NOW) == (entry.subject, entry.approver, entry.not_before)
    assert private.kid != other.kid
    assert 43 == len(Keyring.of([entry]).entries[0].kid)


@pytest.mark.parametrize("name", ["", "two words", "c4n4ry\n", "x" * 201, "a\u200bb"])
def test_a_name_is_one_visible_word(name: str) -> None:
    """A name that people could misread is refused, and not repeated."""
    with pytest.raises(SigningError) as failed:
        new_key(name, NOW)
    assert CANARY not in str(failed.value)


def test_a_key_needs_a_time_zone() -> None:
    """A first day without a time zone would mean another moment elsewhere."""
    with pytest.raises(SigningError):
        new_key("1003", datetime(2030, 1, 1))  # noqa: DTZ001 - what is refused
