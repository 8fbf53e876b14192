"""A worker starts what a process for deliveries accepted before it died."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import select

import worker
from tests.web.hooks import hook_settings
from tests.workflow.world import World
from triage.contracts.canonical import canonical_json
from triage.contracts.response import Status, TriageResponse
from triage.storage.admission import Admission, Content, Delivery, Subject
from triage.storage.schema import requests


async def test_a_worker_starts_what_was_left(world: World, tmp_path: Path) -> None:
    """Nobody serves deliveries any more, and the request gets its run all the same."""
    store = world.services.store
    subject = Subject(
        tenant="default", source="github", repository="acme/left", repository_id="9", number="1"
    )
    request = {
        "request_id": "github-left",
        "title": "The API returns 500",
        "body": "Every call fails.",
        "changed_paths": [],
        "source": "github",
    }
    context = {"tracker": "local", "repository": "acme/left", "issue": "1"}
    document = canonical_json({"request": request, "options": {"context": context}})
    delivery = Delivery(delivery_id="left", event="issues", action="opened", body_digest="x")
    content = Content(digest="x", at=datetime.now(UTC), document=document)
    answer = await Admission(store, timedelta(days=1)).admit(delivery, subject, content)
    settings = hook_settings(tmp_path, "sqlite:///unused.db", task_queue=world.queue)
    assert await worker._starter(world.client, settings, world.services).start_all()
    async with store.read() as connection:
        query = select(requests.c.state, requests.c.workflow_id)
        found = await connection.execute(query.where(requests.c.request_key == answer.request_key))
        [(state, workflow_id)] = found.all()
    assert ("started", f"issue-{answer.request_key}") == (state, workflow_id)
    handle = world.client.get_workflow_handle(workflow_id, result_type=TriageResponse)
    response: TriageResponse = await handle.result()
    assert response.status in {Status.COMPLETED, Status.REVIEW_REQUIRED}
