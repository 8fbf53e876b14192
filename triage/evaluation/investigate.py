"""Running one incident file as a real EvidenceLoop workflow."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final
from uuid import uuid4

from pydantic import JsonValue
from temporalio.client import Client, WorkflowFailureError

from triage.contracts.base import ContractError
from triage.contracts.incident import Incident, LoopResult, parse_incident
from triage.contracts.names import EVIDENCE_LOOP
from triage.evaluation.fixture import FixtureError, read_document, shown
from triage.evaluation.stack import own_stack
from triage.settings import Settings

RUN_SECONDS: Final = 300
"""What an investigation may take; a stuck one fails, and never hangs."""


class RunFailed(Exception):  # noqa: N818 - the name says what happened
    """The platform, not the investigation, failed; the message says how, in our own words."""


async def investigate_file(path: Path, settings: Settings) -> LoopResult:
    """Investigate an incident file on an embedded server, or on the one that is configured.

    Raises:
        FixtureError: the file is no incident; nothing was started.
        ServerUnreachable: the configured server cannot be used.
        EmbeddedError: a server or worker did not start, or ended.
        RunFailed: the run gave no result.
    """
    incident = read_incident(path)
    async with own_stack(settings, "investigate") as stack:
        return await stack.run(investigate_on(stack.client, incident, stack.settings))


async def investigate_on(client: Client, incident: Incident, settings: Settings) -> LoopResult:
    """Investigate on a server where a worker with exactly these settings runs already.

    Raises:
        RunFailed: the run gave no result.
    """
    try:
        result: LoopResult = await client.execute_workflow(
            EVIDENCE_LOOP,
            incident,
            id=f"investigation-{uuid4().hex}",
            task_queue=settings.task_queue,
            result_type=LoopResult,
            execution_timeout=timedelta(seconds=RUN_SECONDS),
        )
        return result
    except WorkflowFailureError as error:
        kind = type(error.cause).__name__
        raise RunFailed(f"the investigation failed on the platform ({kind})") from None


def read_incident(path: Path) -> Incident:
    """Read an incident file.

    Raises:
        FixtureError: the file cannot be read or is no incident; the message names it.
    """
    value = read_document(path)
    try:
        return parse_incident(value)
    except ContractError as error:
        raise FixtureError(f"{shown(path)}: {error}") from None


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
