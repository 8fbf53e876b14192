"""The issue that these tests are about, and short ways to look at it."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from tests.fakes.commit_log import Action
from tests.fakes.control import TrackerControl
from tests.fakes.http_client import Answer, Call, exchange
from tests.fakes.http_tracker import HttpTracker
from tests.fakes.tracker_api import OPERATION_HEADER
from triage.trackers.base import LabelsAdded

REPOSITORY: Final = "acme/shop"
NUMBER: Final = "101"
LABELS: Final = ("bug", "component:api", "good first issue")
KEY: Final = "op_1"
ISSUE_PATH: Final = f"/repos/{REPOSITORY}/issues/{NUMBER}"


async def add(
    tracker: HttpTracker, *labels: str, key: str = KEY, repository: str = REPOSITORY
) -> LabelsAdded:
    """Add labels to the issue."""
    return await tracker.add_labels(
        repository, NUMBER, labels or ("bug",), by="bounded-triage", operation_key=key
    )


async def labelled(control: TrackerControl) -> list[str | None]:
    """Return the labels that were put on any issue, in the order of their commits."""
    return [e.label for e in await control.log() if e.action is Action.LABELED]


async def call(
    control: TrackerControl,
    method: str,
    path: str,
    body: object = None,
    *,
    who: str = "ann",
    operation: str | None = None,
) -> Answer:
    """Make a request as a person or another program would."""
    named = {} if operation is None else {OPERATION_HEADER: operation}
    return await exchange(
        Call(
            method=method,
            url=control.api + path,
            headers={"Authorization": f"Bearer {who}", **named},
            body=b"" if body is None else json.dumps(body).encode(),
            deadline=asyncio.get_running_loop().time() + 20,
            max_bytes=1_000_000,
        )
    )
