"""A service vouches for people at a tracker: only its own key may, and never for itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.signing.makers import (
    ALICE,
    ALICE_ENTRY,
    BOB,
    LONG_AGO,
    NOW,
    STATEMENT,
    claims,
    counts,
    detail_of,
    token,
)
from triage.signing.keys import Keyring, new_key, signing_key
from triage.signing.refusals import Detail
from triage.signing.tokens import Claims, sign, vouched_claims

_PRIVATE, SERVICE_ENTRY = new_key("triage-serve", LONG_AGO, vouches_for=("github",))
SERVICE = signing_key(_PRIVATE)
RING = Keyring.of([ALICE_ENTRY, SERVICE_ENTRY])


def _said(**changes: Any) -> Claims:  # noqa: ANN401 - any claim
    statement = replace(STATEMENT, approver="octocat")
    made = vouched_claims(statement, "github", "583231", NOW, lifetime=timedelta(minutes=5))
    return made.model_copy(update=changes)


def _detail(said: Claims, key: Any = SERVICE, approver: str = "octocat") -> Detail | None:  # noqa: ANN401 - a key
    return detail_of(sign(said, key), RING, replace(STATEMENT, approver=approver))


def test_a_service_vouches_for_somebody_at_its_tracker() -> None:
    """What is verified names the person: the login that was expected and the tracker's own id."""
    assert _detail(_said()) is None
    ring = Keyring.parse(RING.to_json())
    assert RING == ring


def test_who_was_vouched_for_is_told() -> None:
    """Whoever uses the approval learns whose rights to look at again; a person's own has none."""
    assert counts(token()).vouched is None
    ring = Keyring.of([SERVICE_ENTRY])
    said = vouched_claims(STATEMENT, "github", "1001", NOW)
    found = counts(sign(said, SERVICE), ring)
    assert found.vouched is not None
    assert ("1001", "alice", "github", "alice") == (
        found.subject,
        found.approver,
        found.vouched.tracker,
        found.vouched.login,
    )


@pytest.mark.parametrize(
    ("detail", "refused"),
    [
        ("other tracker", Detail.NOT_VOUCHED),
        ("nobody", Detail.NOT_VOUCHED),
        ("other login", Detail.OTHER_APPROVER),
        ("person's key", Detail.MAY_NOT_VOUCH),
        ("key that is not in the ring", Detail.UNKNOWN_KEY),
    ],
)
def test_what_a_key_may_not_say_does_not_count(detail: str, refused: Detail) -> None:
    """No person's key vouches, no service approves for itself, and no login stands for another."""
    vouched = _said().vouched
    assert vouched is not None
    elsewhere = vouched.model_copy(update={"tracker": "gitlab"})
    made = {
        "other tracker": lambda: _detail(_said(vouched=elsewhere)),
        "nobody": lambda: _detail(claims(SERVICE), approver="triage-serve"),
        "other login": lambda: _detail(_said(), approver="hubot"),
        "person's key": lambda: _detail(_said(), ALICE),
        "key that is not in the ring": lambda: _detail(_said(), BOB),
    }
    assert refused == made[detail]()


def test_an_old_keyring_is_still_one() -> None:
    """An entry that says nothing of vouching is a person's own."""
    text = ALICE_ENTRY.model_dump_json(exclude={"vouches_for"})
    assert (ALICE_ENTRY,) == Keyring.parse(f"[{text}]".encode()).entries
