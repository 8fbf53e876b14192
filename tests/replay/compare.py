"""Replays histories with the sandbox and without it, and compares all that they do.

Run as a process of its own: it prints one JSON line a file, ``{"file", "ok", "error",
"commands"}``, where `commands` are the lines of `CommandWatch`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from temporalio.client import WorkflowHistory
from temporalio.worker import WorkflowRunner

import worker
from tests.replay.commands import CommandWatch, recorded_arguments
from triage.connection import run_async
from triage.replay import read_history, replay_failure
from triage.sandbox import bare, sandboxed


async def compare(file: Path) -> tuple[str | None, list[str]]:
    """Return how the two replays of one history differ, or from the history, and the commands."""
    history = read_history(file)
    inside, problem = await _watched(history, sandboxed())
    outside, outside_problem = await _watched(history, bare())
    recorded = recorded_arguments(history)
    if problem or outside_problem:
        return f"sandboxed: {problem}; unsandboxed: {outside_problem}", inside.lines
    if (inside.lines, inside.arguments) != (outside.lines, outside.arguments):
        return "the sandbox changes what the workflow does", inside.lines
    if recorded != inside.arguments[: len(recorded)]:
        return f"other arguments than recorded: {inside.arguments}", inside.lines
    return None, inside.lines


async def _watched(
    history: WorkflowHistory, runner: WorkflowRunner
) -> tuple[CommandWatch, str | None]:
    watch = CommandWatch()
    problem = await replay_failure(history, worker.WORKFLOWS, runner=runner, interceptors=[watch])
    return watch, problem


async def main() -> int:
    """Compare all files that are named."""
    status = 0
    for name in sys.argv[1:]:
        error, commands = await compare(Path(name))
        answer = {"file": name, "ok": error is None, "error": error, "commands": commands}
        print(json.dumps(answer), flush=True)  # noqa: T201 - its answer
        status = status or int(error is not None)
    return status


if __name__ == "__main__":
    sys.exit(run_async(main()))
