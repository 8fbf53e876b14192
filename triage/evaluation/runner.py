"""Running a fixture's cases as real workflows, side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from temporalio.client import Client

from triage.evaluation.fixture import Fixture
from triage.evaluation.report import Evaluation
from triage.settings import Settings

Progress = Callable[[int, int], None]


async def evaluate_file(
    path: Path, settings: Settings, progress: Progress | None = None
) -> Evaluation:
    """Evaluate a fixture file on an embedded server, or on the one that is configured."""
    raise NotImplementedError


async def evaluate_on(
    client: Client, fixture: Fixture, settings: Settings, progress: Progress | None = None
) -> Evaluation:
    """Evaluate on a server where a worker with exactly these settings runs already."""
    raise NotImplementedError
