"""What the server has of the runs of a soak: whether it replays, and why a run does not end."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from temporalio.client import Client


async def fetched(client: Client, queue: str, folder: Path) -> list[str]:
    """Write down the history of every execution that a worker has seen; return the files."""
    texts = {}
    async for run in client.list_workflows(f"TaskQueue = '{queue}'"):
        history = await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
        if any(e.HasField("workflow_task_completed_event_attributes") for e in history.events):
            texts[f"{run.id}-{run.run_id}.json"] = history.to_json()
    return _written(texts, folder)


def _written(texts: Mapping[str, str], folder: Path) -> list[str]:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return sorted(str(path) for path in folder.iterdir())


async def replayed(files: Sequence[str]) -> list[str]:
    """Replay histories with the production converter and sandbox, in a process of its own.

    Returns:
        What is wrong, one sentence a history.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "worker", "--replay", *files), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    found = [json.loads(line) for line in output.splitlines()]
    failed = [f"I11: {Path(r['file']).stem}: {r['error']}" for r in found if not r["ok"]]
    missing = len(files) - len(found)
    return failed + ([f"I11: {missing} histories were not replayed"] if missing else [])


async def obstacle(client: Client, workflow_id: str) -> str:
    """Say why the last failed workflow task of a run failed, if any did."""
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    failures = [
        event.workflow_task_failed_event_attributes.failure.message
        for event in history.events
        if event.HasField("workflow_task_failed_event_attributes")
    ]
    return failures[-1] if failures else "none of its workflow tasks failed"
