"""A worker can be given the fake tracker as its far end."""

from __future__ import annotations

from pathlib import Path

import pytest

import worker
from tests.fakes.control import TrackerControl
from tests.fakes.wiring import writes_through_http
from tests.unit.fakes.scene import NUMBER, REPOSITORY
from triage.settings import load_settings
from triage.trackers.base import TrackedIssue


async def test_a_worker_writes_through_http(
    control: TrackerControl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `worker.main` opens has the tracker at the address as its local one, and only then."""
    monkeypatch.setenv("TRIAGE_HOME", str(tmp_path))
    settings = load_settings()
    with writes_through_http(control.api, deadline_seconds=20):
        async with worker.open_services(settings) as services:
            issue = await services.trackers["local"].get_issue(REPOSITORY, NUMBER)
    assert isinstance(issue, TrackedIssue)
    assert "Crash" == issue.title
    async with worker.open_services(settings) as services:
        assert not await services.trackers["local"].get_issue(REPOSITORY, NUMBER)
