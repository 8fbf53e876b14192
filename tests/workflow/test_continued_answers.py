"""A comment on an issue whose run has ended decides on the run that continues it, and no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.workflow.answering import REPOSITORY, Desk, opened_desk
from tests.workflow.decisions import final
from tests.workflow.runs import Run
from tests.workflow.world import World
from triage.contracts.approval import Verdict
from triage.contracts.response import Status
from triage.storage.admission import Subject


@dataclass
class Continued:
    """A run on an issue that ended in review."""

    desk: Desk
    ended: Run
    subject: Subject

    async def by(self, run_id: str, after: Run | None = None, **context: JsonValue) -> Run:
        """Continue it, or the one before, under an id."""
        before = after or self.ended
        link: JsonValue = {
            "workflow_id": before.id,
            "run_id": before.handle.first_execution_run_id or "",
            "version": (await before.state()).version,
        }
        return await self.desk.world.start(
            final("owners-api"),
            run_id=run_id,
            mode="approve",
            context={"repository": REPOSITORY, "issue": self.subject.number, **context},
            continued_from=link,
        )


@pytest.fixture
async def continued(world: World, tmp_path: Path) -> AsyncIterator[Continued]:
    """GitHub, and an issue whose run was told no."""
    async with opened_desk(world, tmp_path) as desk:
        ended, pending, subject = await desk.waiting()
        await desk.says(subject, pending, verdict=Verdict.REJECT)
        await ended.response()
        yield Continued(desk, ended, subject)


async def test_the_newest_of_the_chain_is_answered(continued: Continued) -> None:
    """A continuation counts, and then the one that continues that."""
    first = await continued.by(f"{continued.ended.id}.2")
    await continued.desk.says(continued.subject, await first.waiting(), verdict=Verdict.REJECT)
    assert Status.REVIEW_REQUIRED is (await first.response()).status
    second = await continued.by(f"{continued.ended.id}.3", first)
    await continued.desk.says(continued.subject, await second.waiting())
    assert Status.COMPLETED is (await second.response()).status
    assert ["accepted"] * 3 == await continued.desk.outcomes(continued.subject)


async def test_a_run_of_the_same_series_that_continues_another_is_not_answered(
    continued: Continued,
) -> None:
    """An id proves nothing: without its link to the chain a run gets no comment's answer."""
    desk = continued.desk
    other, pending, subject = await desk.waiting()
    await desk.says(subject, pending, verdict=Verdict.REJECT)
    await other.response()
    stranger = await continued.by(f"{continued.ended.id}.2", other)
    await desk.says(continued.subject, await stranger.waiting())
    assert ["accepted", "not_pending"] == await desk.outcomes(continued.subject)
    assert await stranger.pending() is not None


async def test_a_run_about_another_issue_is_not_answered(continued: Continued) -> None:
    """Whoever reaches the server may link any run to any other: a comment decides on its issue."""
    desk = continued.desk
    _, _, elsewhere = await desk.waiting()
    run = await continued.by(f"{continued.ended.id}.2", issue=elsewhere.number)
    await desk.says(continued.subject, await run.waiting())
    assert ["accepted", "other_issue"] == await desk.outcomes(continued.subject)
    assert await run.pending() is not None
