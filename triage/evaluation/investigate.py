"""Running one incident file as a real EvidenceLoop workflow."""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue
from temporalio.client import Client

from triage.contracts.incident import Incident, LoopResult
from triage.settings import Settings


async def investigate_file(path: Path, settings: Settings) -> LoopResult:
    """Investigate an incident file on an embedded server, or on the one that is configured."""
    raise NotImplementedError


async def investigate_on(client: Client, incident: Incident, settings: Settings) -> LoopResult:
    """Investigate on a server where a worker with exactly these settings runs already."""
    raise NotImplementedError


def loop_text(result: LoopResult) -> str:
    """Return ``status=… reads=…``, without a newline."""
    return f"status={result.status.value} reads={result.reads}"


def loop_json(result: LoopResult) -> dict[str, JsonValue]:
    """Return status, number of reads and the permitted reads as a JSON document."""
    return {
        "status": result.status.value,
        "reads": result.reads,
        "events": [event.model_dump(mode="json") for event in result.events],
    }
