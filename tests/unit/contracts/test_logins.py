"""Two logins that look alike are the same person, where that takes a right away."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from triage.cli.errors import InputError
from triage.cli.undo_rights import why_not
from triage.cli.who import who
from triage.contracts.approval import Verdict, parse_review
from triage.contracts.base import ContractError
from triage.contracts.logins import exact, folded, is_visible
from triage.policy.approval_gate import Trust, may_decide
from triage.policy.rules import BUILTIN_RULES

UNSEEN = [
    "\u200b",
    "\u00ad",
    "\u2060",
    "\u202e",
    "\ufe0f",
    "\u3164",
    "\u115f",
    "\u0000",
    "\U000e0041",
]


@pytest.mark.parametrize("unseen", UNSEEN, ids=ascii)
def test_what_nobody_sees_makes_no_other_person(unseen: str) -> None:
    """An author or a bot with such a character in the name decides no more than without it."""
    for name in (f"eve{unseen}", f"{unseen}@E{unseen}ve", f"helper[bo{unseen}t]{unseen}"):
        assert not may_decide(name, Trust(local=True, author="eve"))
        assert why_not(name, "eve", BUILTIN_RULES) is not None
    assert ("eve", f"eve{unseen}") == (folded(f"e{unseen}ve"), exact(f"eve{unseen}"))


@pytest.mark.parametrize("unseen", UNSEEN, ids=ascii)
def test_a_name_that_nobody_sees_is_none(unseen: str) -> None:
    """Neither a review nor a command takes it, and it decides nothing."""
    assert not is_visible(f" {unseen} ")
    assert not may_decide(unseen, Trust(local=True, author="eve"))
    with pytest.raises(InputError, match="blank"):
        who(unseen)
    envelope: dict[str, JsonValue] = {"operation_id": "op-1", "version": 1, "approver": unseen}
    with pytest.raises(ContractError):
        parse_review(envelope, Verdict.APPROVE)


def test_names_of_people_stay_apart() -> None:
    """Whoever can be told apart is, in any script."""
    names = ["ann", "ånn", "анна", "アンナ", "안나", "a-n-n", "किरण"]
    assert len(names) == len(set(map(folded, names)))
    assert all(map(is_visible, names))
