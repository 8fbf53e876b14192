"""Asking in the activity before the question: a decision, or nothing at all."""

from __future__ import annotations

import asyncio

import pytest

from activities import asking as activities_asking
from activities.asking import ahead
from tests.activities.questions import DECISION, Answer, Asking
from triage.contracts.payloads import Asked, DecideOutcome, DecideResult
from triage.models.base import ModelRequest


async def test_a_decision_that_is_asked_for_ahead_says_what_was_asked(asking: Asking) -> None:
    """It is held against the question that the run would ask."""

    async def answer(_: ModelRequest) -> DecideResult:
        return DECISION

    found = await asking.ahead(answer)
    asked = Asked(step=1, version=2, request_digest=asking.request.request_digest)
    assert DECISION.model_copy(update={"asked": asked}) == found


async def _never(_: ModelRequest) -> DecideResult:
    await asyncio.Event().wait()
    raise AssertionError


async def _broken(_: ModelRequest) -> DecideResult:
    raise ValueError


async def _too_late(_: ModelRequest) -> DecideResult:
    return DecideResult(outcome=DecideOutcome.TIMEOUT)


@pytest.mark.parametrize("answer", [_never, _broken, _too_late])
async def test_no_decision_is_none_that_comes_along(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    """What goes wrong is met where the question is asked by itself, with its own retries."""
    monkeypatch.setattr(activities_asking, "AHEAD_SECONDS", 0.01)
    assert await asking.ahead(answer) is None


async def test_a_store_that_fails_while_a_question_is_asked_ahead_fails_nothing_else(
    asking: Asking,
) -> None:
    """The evidence or the pinned run is kept already: only the question is left to be asked."""
    lost = asking.request.model_copy(update={"policy_digest": "sha256:gone"})
    assert await ahead(asking.services, lost) is None
