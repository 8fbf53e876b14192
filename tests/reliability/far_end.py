"""The production services, with a tracker that does what a test says and may take its time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from activities.services import Services
from tests.activities.scripted_tracker import ScriptedTracker
from triage.policy.tools import BUILTIN_TOOLS, ToolRegistry

PATIENCE_MS = 60_000


def with_tracker(services: Services, tracker: ScriptedTracker, **changes: Any) -> Services:  # noqa: ANN401 - any field
    """Return services that have `tracker` under the name ``scripted``, and patient tools."""
    tools = ToolRegistry(
        *(replace(spec, timeout_ms=PATIENCE_MS, local=False) for spec in BUILTIN_TOOLS)
    )
    trackers = {**services.trackers, "scripted": tracker}
    return replace(services, tools=tools, trackers=trackers, **changes)
