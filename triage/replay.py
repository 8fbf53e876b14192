"""Replaying recorded histories with the production converter and the sandbox.

A history that is not one makes the SDK hang or panic, so its shape is checked first, and whoever
calls this runs it in a process of its own under a time limit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TextIO

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from triage.converter import data_converter

FIRST_EVENT: Final = "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED"
MIN_EVENTS: Final = 2


class HistoryError(ValueError):
    """A file is not a workflow's history."""


def read_history(path: Path) -> WorkflowHistory:
    """Read a history as `temporal workflow show --output json` writes it.

    Raises:
        HistoryError: the message says what is wrong with the file.
    """
    try:
        text = path.read_text(encoding="utf-8")
        events = json.loads(text)["events"]
        kinds = [event["eventType"] for event in events]
        numbers = [int(event["eventId"]) for event in events]
    except OSError:
        raise HistoryError("the file cannot be read") from None
    except (ValueError, KeyError, TypeError):
        raise HistoryError("the file is not a workflow history in JSON") from None
    if len(kinds) < MIN_EVENTS or kinds[0] != FIRST_EVENT:
        raise HistoryError("a history begins with the start of a workflow and its first task")
    if numbers != list(range(1, len(numbers) + 1)):
        raise HistoryError("the history has missing or repeated events")
    try:
        return WorkflowHistory.from_json(path.stem, text)
    except Exception:  # noqa: BLE001 - protobuf's parser raises many kinds
        raise HistoryError("the history has events that this SDK does not know") from None


async def replay_failure(path: Path, workflows: Sequence[type]) -> str | None:
    """Replay one history; return what went wrong, or None."""
    try:
        history = read_history(path)
    except HistoryError as error:
        return str(error)
    replayer = Replayer(workflows=workflows, data_converter=data_converter)
    result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    failure = result.replay_failure
    return None if failure is None else f"{type(failure).__name__}: {failure}"


async def replay_files(
    paths: Iterable[str], workflows: Sequence[type], out: TextIO = sys.stdout
) -> int:
    """Replay files, writing one JSON line a file: ``{"file", "ok", "error"}``.

    Returns:
        0 when every history replays, else 1.
    """
    status = 0
    for name in paths:
        error = await replay_failure(Path(name), workflows)
        out.write(json.dumps({"file": name, "ok": error is None, "error": error}) + "\n")
        out.flush()
        status = status or int(error is not None)
    return status
