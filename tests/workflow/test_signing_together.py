"""Several people who sign at the same moment: each approval counts, and the last one decides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.workflow.runs import Run
from tests.workflow.test_signed_approvals import opened_signing
from tests.workflow.world import World
from triage.contracts.response import Status

Sent = dict[str, JsonValue]
Send = Callable[[Run, Sent], Awaitable[None]]


async def _by_update(run: Run, signed: Sent) -> None:
    assert (await run.update({**signed, "verdict": "approve"})).accepted


async def _by_signal(run: Run, signed: Sent) -> None:
    await run.signal("approve", signed)


@pytest.mark.parametrize(
    ("one", "other"),
    [(_by_update, _by_update), (_by_signal, _by_update), (_by_signal, _by_signal)],
    ids=["two updates", "a signal and an update", "two signals"],
)
async def test_two_who_sign_at_the_same_moment_are_two(
    world: World, tmp_path: Path, one: Send, other: Send
) -> None:
    """While both are verified neither is the last; the later one is recorded as the decision."""
    async with opened_signing(world, tmp_path, approvals_required=2) as signed:
        run, pending = await signed.waiting()
        first, second = signed.signed(run, pending), signed.other_person().signed(run, pending)
        await asyncio.gather(one(run, first), other(run, second))
        response = await run.response()
        assert (Status.COMPLETED, None) == (response.status, response.failure)
        assert ["bug"] == await signed.world.written(run)
        assert [] == await run.refusal_codes()
