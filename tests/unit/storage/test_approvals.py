"""Decisions are kept as they were made, and the first one stands."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.storage.samples import NOW, approval, operation
from triage.storage.approvals import (
    ApprovalRow,
    Approvals,
    ApprovalSource,
    RefusalCode,
    Verdict,
    refusal_of,
)
from triage.storage.engine import Store

GIVEN = approval(operation())


async def test_a_decision_comes_back_as_it_was_made(store: Store) -> None:
    """Every field of a decision is kept, odd names included."""
    decision = replace(
        GIVEN,
        verdict=Verdict.REJECT,
        approver="odd\x00\udc80name",
        source=ApprovalSource.TOKEN,
        token_id="jti-1",
        note_digest="sha256:note",
        decided_at=NOW,
        expires_at=NOW + timedelta(hours=72),
    )
    assert decision == await Approvals(store).record(decision, "default")
    assert decision == await Approvals(store).get("op_1", 3)


async def test_the_first_decision_stands(store: Store) -> None:
    """A second decision on the same operation and version gets the first one's outcome."""
    book = Approvals(store)
    first = await book.record(GIVEN, "default")
    second = replace(GIVEN, approval_id="second", verdict=Verdict.REJECT)
    assert first == await book.record(second, "default")
    assert first == await book.get("op_1", 3)


async def test_versions_are_decided_apart(store: Store) -> None:
    """A decision at one version says nothing about another."""
    await Approvals(store).record(GIVEN, "default")
    assert await Approvals(store).get("op_1", 4) is None


async def test_a_token_is_used_once(store: Store) -> None:
    """A signed decision whose single-use id was seen on another operation is not kept."""
    book = Approvals(store)
    await book.record(replace(GIVEN, token_id="jti-1"), "default")
    other = approval(operation("op_2"), token_id="jti-1")
    assert await book.record(other, "default") is None
    assert await book.get("op_2", 3) is None


async def test_a_caller_cannot_claim_a_consumption(store: Store) -> None:
    """Only the store says that an approval was used or revoked."""
    forged = replace(GIVEN, consumed_by="op_9", consumed_at=NOW, revoked_at=NOW)
    kept = await Approvals(store).record(forged, "default")
    assert kept is not None
    assert (None, None, None) == (kept.consumed_by, kept.consumed_at, kept.revoked_at)


@pytest.mark.parametrize(
    ("stands", "expected"),
    [
        (GIVEN, None),
        (None, RefusalCode.MISSING),
        (replace(GIVEN, verdict=Verdict.REJECT), RefusalCode.REJECTED),
        (replace(GIVEN, operation_digest="sha256:other"), RefusalCode.DIGEST_MISMATCH),
        (replace(GIVEN, operation_key="op_2"), RefusalCode.DIGEST_MISMATCH),
        (replace(GIVEN, revoked_at=NOW), RefusalCode.REVOKED),
        (replace(GIVEN, consumed_by="op_2"), RefusalCode.CONSUMED),
        (replace(GIVEN, consumed_by="op_1"), None),
        (replace(GIVEN, expires_at=NOW), RefusalCode.EXPIRED),
        (replace(GIVEN, expires_at=NOW + timedelta(microseconds=1)), None),
    ],
)
def test_a_decision_allows_exactly_its_operation(
    stands: ApprovalRow | None, expected: RefusalCode | None
) -> None:
    """A decision that is not an approval of this operation, in force, is refused with a code."""
    row = operation()
    assert expected is refusal_of(stands, row.operation_key, row.digest, NOW)
