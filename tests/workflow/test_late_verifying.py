"""A signature that is still verified when its run has come to an end changes nothing of that."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from activities.approvals import ApprovalActivities
from tests.workflow.decisions import hand_over
from tests.workflow.runs import Run, outcome
from tests.workflow.test_edits import EDITED
from tests.workflow.test_signed_approvals import SCRIPT, Signed, audited, opened_signing
from tests.workflow.world import World
from triage.contracts.approval import RefusalCode, ReviewAnswer
from triage.contracts.response import Status
from triage.signing.keys import Keyring


class Held:
    """Verifying stands still until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.goes_on = asyncio.Event(), asyncio.Event()
        keys = ApprovalActivities._keys

        async def later(activities: ApprovalActivities) -> Keyring | None:
            self.began.set()
            await self.goes_on.wait()
            return await keys(activities)

        monkeypatch.setattr(ApprovalActivities, "_keys", later)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    """Verifying stands still."""
    return Held(monkeypatch)


WINDOWS_SECONDS = (2, 2, 30)
"""One after the other, for a machine that stood still until the wait was over."""


async def _expired(signed: Signed, held: Held) -> tuple[Run, asyncio.Task[ReviewAnswer]]:
    """Return a run whose wait ended while a signature for it was verified, and what that says."""
    for window_seconds in WINDOWS_SECONDS:
        run = await signed.world.start(
            *SCRIPT[:1],
            hand_over(),
            mode="approve",
            approval_window_seconds=window_seconds,
            context={"author": "reporter"},
        )
        answer = await _reviewed(signed, run, held)
        if answer is not None:
            await run.reaches(lambda state: state.pending is None)
            return run, answer
    raise AssertionError("no review came in time")


async def _reviewed(signed: Signed, run: Run, held: Held) -> asyncio.Task[ReviewAnswer] | None:
    """Review a run, and return once that is verified; None if the wait was over before."""
    state = await run.reaches(lambda state: bool(state.pending or state.response))
    if state.pending is None:
        return None
    review = {**signed.signed(run, state.pending), "verdict": "approve"}
    answer = asyncio.create_task(run.update(review))
    began = asyncio.create_task(held.began.wait())
    await asyncio.wait({answer, began}, return_when=asyncio.FIRST_COMPLETED)
    if began.done():
        return answer
    began.cancel()
    await asyncio.gather(answer, return_exceptions=True)
    return None


async def test_an_edit_meanwhile_is_taken_up(world: World, tmp_path: Path, held: Held) -> None:
    """The run is still open, so the server takes the edit, and the run must not end without it."""
    async with opened_signing(world, tmp_path) as signed:
        run, answer = await _expired(signed, held)
        await run.signal("edit", EDITED)
        held.goes_on.set()
        await answer
        assert (Status.REVIEW_REQUIRED, None) == outcome(await run.response())
        assert 2 == len((await run.state()).decisions)


async def test_without_one_the_run_ends_as_it_had(world: World, tmp_path: Path, held: Held) -> None:
    """A review that was verified too late is told so, and the wait has expired."""
    async with opened_signing(world, tmp_path) as signed:
        run, answer = await _expired(signed, held)
        held.goes_on.set()
        assert RefusalCode.NOT_PENDING == (await answer).code
        assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(await run.response())


async def test_one_of_several_decides_nothing_then(
    world: World, tmp_path: Path, held: Held
) -> None:
    """The first of two is on the trail as one that agreed, and never recorded as the decision."""
    async with opened_signing(world, tmp_path, approvals_required=2) as signed:
        run, answer = await _expired(signed, held)
        held.goes_on.set()
        assert RefusalCode.NOT_PENDING == (await answer).code
        assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(await run.response())
        assert ["approval.counted"] == await audited(signed.world, run)
