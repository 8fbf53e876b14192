"""What a comment came to is known although whoever carried it on died before it was told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.workflow.losing import DiesBefore, losing
from tests.workflow.world import World
from triage.contracts.approval import Verdict
from triage.contracts.response import Status


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("later", [timedelta(minutes=2), timedelta(hours=2)])
async def test_an_answer_that_counted_is_not_recorded_as_refused(
    world: World, tmp_path: Path, verdict: Verdict, later: timedelta
) -> None:
    """The run took it and asks nothing any more: the next attempt learns so, also much later."""
    async with losing(world, tmp_path) as lost:
        run, pending, subject = await lost.desk.waiting()
        await lost.says(subject, pending, verdict=verdict)
        await run.response()
        await lost.tries_again(later)
        assert ["accepted"] == await lost.desk.outcomes(subject)


async def test_one_approval_of_two_that_counted_is_not_recorded_as_refused(
    world: World, tmp_path: Path
) -> None:
    """It decided nothing, so the run's decision is another person's: the server knows of both."""
    async with losing(world, tmp_path, required=2) as lost:
        run, pending, subject = await lost.desk.waiting()
        await lost.says(subject, pending)
        assert ("octocat",) == (await run.waiting()).approved_by
        await lost.desk.says(subject, pending, "boss")
        assert Status.COMPLETED is (await run.response()).status
        await lost.tries_again()
        assert ["accepted", "accepted"] == await lost.desk.outcomes(subject)


@pytest.mark.parametrize("who", ["boss", "octocat"])
async def test_another_comment_of_the_same_answer_counts_for_itself_only(
    world: World, tmp_path: Path, who: str
) -> None:
    """One that never reached the run is refused, whoever decided the same meanwhile."""
    async with losing(world, tmp_path) as lost:
        run, pending, subject = await lost.desk.waiting()
        await lost.says(subject, pending, dies=DiesBefore)
        await lost.desk.says(subject, pending, who)
        await run.response()
        await lost.tries_again()
        assert ["not_pending", "accepted"] == await lost.desk.outcomes(subject)


async def test_an_answer_that_never_went_goes_later(world: World, tmp_path: Path) -> None:
    """A process that dies before it sends leaves an answer that counts with the next attempt."""
    async with losing(world, tmp_path) as lost:
        run, pending, subject = await lost.desk.waiting()
        await lost.says(subject, pending, dies=DiesBefore)
        await lost.tries_again()
        assert ["accepted"] == await lost.desk.outcomes(subject)
        assert Status.COMPLETED is (await run.response()).status


async def test_an_answer_that_never_went_is_no_answer_after_an_hour(
    world: World, tmp_path: Path
) -> None:
    """It may be a recording by then, and the run still waits for somebody."""
    async with losing(world, tmp_path) as lost:
        run, pending, subject = await lost.desk.waiting()
        await lost.says(subject, pending, dies=DiesBefore)
        await lost.tries_again(timedelta(hours=2))
        assert ["old"] == await lost.desk.outcomes(subject)
        assert pending == await run.pending()
