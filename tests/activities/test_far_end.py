"""A tracker that does not answer a look ends a run by name; our own store is waited for."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.far_end import LOOK_ATTEMPTS, look
from triage.storage.engine import Store
from triage.storage.errors import StorageUnavailable
from triage.trackers.base import TrackerUnavailable
from triage.trackers.local import LocalTracker


async def _looked(looking: Coroutine[Any, Any, object], attempt: int) -> object:
    env = ActivityEnvironment()
    env.info = replace(env.info, attempt=attempt)
    return await env.run(look, looking)


async def _away() -> None:
    raise TrackerUnavailable("away", effect_possible=False)


@pytest.mark.parametrize("attempt", [1, LOOK_ATTEMPTS])
async def test_a_tracker_that_does_not_work_is_asked_so_many_times(attempt: int) -> None:
    """Then the run ends with the tool's name for it."""
    with pytest.raises(ApplicationError) as told:
        await _looked(_away(), attempt)
    assert ("tool_error", attempt == LOOK_ATTEMPTS) == (told.value.type, told.value.non_retryable)


async def test_our_own_store_is_waited_for_as_for_anything_else(store: Store) -> None:
    """A disk that is full for some seconds ends no run because the local tracker is on it."""
    tracker = LocalTracker(store)
    path = store.address.path or Path()
    away = path.rename(path.with_name("away"))
    for looking in (
        tracker.get_issue("local", "1"),
        tracker.admit_issue("local", "1", title="t", body="b"),
    ):
        with pytest.raises(StorageUnavailable, match="moved"):
            await _looked(looking, LOOK_ATTEMPTS)
    away.rename(path)
