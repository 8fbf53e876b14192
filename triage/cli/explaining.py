"""`triage explain`: tells a run's story from its history, which needs no worker."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from temporalio.client import WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode

from triage.cli.clients import RPC_TIMEOUT, bounded, connect, find_run
from triage.cli.errors import InputError, RefusedError
from triage.cli.inputs import STDIN
from triage.cli.output import Format, put, put_json
from triage.cli.running import run as run_coroutine
from triage.replay import HistoryError, read_history
from triage.story.parts import Story
from triage.story.telling import tell
from triage.story.words import moment, named, span

EXPLAIN_SECONDS: Final = 30.0
"""A history of thousands of events comes in many pages."""

_STDIN_FILE: Final = Path("/dev/stdin")


def explain(name: str | None, run_id: str | None, file: Path | None, format_: Format) -> None:
    """Print the story of one run.

    Args:
        name: the run's workflow id or request id, or None if `file` is given.
        run_id: one execution of it; by default the latest.
        file: a history, as ``temporal workflow show --output json`` writes it.
        format_: for people or for programs.

    Raises:
        CliError: there is no such run or file, or Temporal does not answer.
    """
    if (name is None) == (file is None):
        raise InputError("name one run, or a history with --file", "'triage list' shows the runs")
    story = _of_file(file) if file else run_coroutine(_of_run(name or "", run_id))
    if format_ is Format.JSON:
        put_json(story.to_json())
    else:
        put(*story_lines(story))


def _of_file(file: Path) -> Story:
    try:
        history = read_history(_STDIN_FILE if file == STDIN else file)
    except HistoryError as error:
        raise InputError(f"{file}: {error}") from None
    return tell(history.events)


async def _of_run(name: str, run_id: str | None) -> Story:
    async with bounded(EXPLAIN_SECONDS):
        client, _ = await connect()
        run = await find_run(client, name)
        chosen = run_id or run.description.run_id
        handle = client.get_workflow_handle(run.id, run_id=chosen)
        try:
            history: WorkflowHistory = await handle.fetch_history(rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status not in {RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT}:
                raise
            raise RefusedError(f"{run.id} has no run {named(chosen)}") from None
    return tell(history.events, run_id=chosen, now=datetime.now(UTC))


def story_lines(story: Story) -> list[str]:
    """Return a story for people: a line a beat, with its time and how long after the start."""
    lines = [f"{named(story.workflow_id)}  {story.workflow_type}  {named(story.status)}"]
    lines.append(f"run {named(story.run_id)}, began {moment(story.began)}")
    for told in story.beats:
        after = f"+{span(told.at - story.began)}"
        lines.append(f"{moment(told.at)}  {after:<12}  {told.kind:<10}  {told.text}")
    return lines
