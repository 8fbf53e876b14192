"""A tracker that cannot show an issue ends the run by a name, and never loops it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from activities.far_end import LOOK_ATTEMPTS
from tests.activities.scripted_tracker import Read, ScriptedTracker
from tests.workflow.decisions import final, lookup
from tests.workflow.runs import outcome
from tests.workflow.test_uncertain_writes import FarEnd, far_end
from tests.workflow.world import World, altered_world
from triage.contracts.response import Status
from triage.trackers.base import (
    TrackedIssue,
    TrackerError,
    TrackerRefused,
    TrackerTimeout,
    TrackerUnavailable,
)

__all__ = ["far_end"]

FAULTS = {
    Read.ERROR: "tool_error",
    Read.CUT: "tool_timeout",
    Read.FORBIDDEN: "tool_error",
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_run_whose_write_cannot_be_shown_goes_to_review(
    far_end: FarEnd, fault: Read
) -> None:
    """Nobody is asked; the proposal and the evidence stay for a person, and nothing is sent."""
    far_end.tracker.will(*[fault] * 50)
    run = await far_end.run(lookup(), final("owners-api"), mode="approve", approvals={})
    response = await run.response()
    assert (Status.REVIEW_REQUIRED, FAULTS[fault]) == outcome(response)
    assert (("bug", "component:api"), ("owners-api",)) == (response.labels, response.evidence_ids)
    assert 0 == far_end.tracker.calls


class Unwilling(ScriptedTracker):
    """A tracker that does not let an issue in, for some reason."""

    def __init__(self, reason: TrackerError) -> None:
        super().__init__()
        self.reason = reason
        self.asked_for = 0

    async def admit_issue(self, *_args: Any, **_names: Any) -> TrackedIssue:  # noqa: ANN401 - any
        """Fail, every time."""
        self.asked_for += 1
        raise self.reason


UNWILLING = {
    "silence": (TrackerTimeout("no answer"), "tool_timeout", LOOK_ATTEMPTS),
    "an error": (TrackerUnavailable("down", effect_possible=False), "tool_error", LOOK_ATTEMPTS),
    "no such issue": (TrackerRefused("issue_not_found", "there is none"), "invalid_input", 1),
}


@pytest.mark.parametrize("name", UNWILLING)
async def test_a_run_whose_issue_cannot_be_looked_up_fails_by_a_name(
    world: World, name: str
) -> None:
    """After a bounded number of looks it ends, with nothing decided and nothing written."""
    reason, failure, looks = UNWILLING[name]
    tracker = Unwilling(reason)
    services = replace(world.services, trackers={**world.services.trackers, "scripted": tracker})
    async with altered_world(world, services=services) as opened:
        response = await opened.play(lookup(), context={"tracker": "scripted"})
    assert (Status.FAILED, failure, 0) == (*outcome(response), response.steps)
    assert (looks, 0) == (tracker.asked_for, tracker.calls)
