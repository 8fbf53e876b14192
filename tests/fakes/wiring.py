"""Lets a worker of this process write through HTTP instead of into its own tables.

Why it exists: crash tests run what `worker.main` runs, and only the far end differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from tests.fakes.http_tracker import HttpTracker
from triage.trackers import factory


@contextmanager
def writes_through_http(address: str, **options: Any) -> Iterator[None]:  # noqa: ANN401 - HttpTracker's
    """Make the tracker ``local`` of every worker that is built meanwhile the one at `address`."""
    tracker = HttpTracker(address, **options)
    with mock.patch.object(factory, "LocalTracker", return_value=tracker):
        yield
