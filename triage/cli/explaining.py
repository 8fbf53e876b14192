"""`triage explain`: tells a run's story from its history, which needs no worker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode

from triage.cli.clients import RPC_TIMEOUT, bounded, connect, find_run
from triage.cli.errors import InputError, RefusedError
from triage.cli.inputs import STDIN
from triage.cli.output import Format, put_json, put_long
from triage.cli.running import run as run_coroutine
from triage.cli.times import with_times_told
from triage.replay import HistoryError, read_history
from triage.story.carrying import carries_on
from triage.story.parts import Story
from triage.story.telling import tell, tell_chain
from triage.story.words import counted, listed, moment, named, span

EXPLAIN_SECONDS: Final = 30.0
"""A history of thousands of events comes in many pages."""

MAX_EXECUTIONS: Final = 25
"""Of a run that continued as new again and again, so many are told, the latest."""

_STDIN_FILE: Final = Path("/dev/stdin")


Events = Sequence[HistoryEvent]


def explain(name: str | None, run_id: str | None, file: Path | None, format_: Format) -> None:
    """Print the story of one run.

    Args:
        name: the run's workflow id or request id, or None if `file` is given.
        run_id: one execution of it alone; by default the latest and those that it carries on.
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
        put_long(*story_lines(story))


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
        events = await _events(client, run.id, chosen)
        if events is None:
            raise RefusedError(f"{run.id} has no run {named(chosen)}")
        chain, missing = [events], ""
        if run_id is None:
            missing = await _complete(client, run.id, chain)
    return tell_chain(chain, run_id=chosen, now=datetime.now(UTC), missing=missing)


async def _events(client: Client, workflow_id: str, run_id: str) -> Events | None:
    """Return the history of one execution; None if the server does not have it."""
    handle = client.get_workflow_handle(workflow_id, run_id=run_id)
    try:
        history: WorkflowHistory = await handle.fetch_history(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status not in {RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT}:
            raise
        return None
    return history.events


async def _complete(client: Client, workflow_id: str, chain: list[Events]) -> str:
    """Put the executions that the first one carries on before it; say why one is missing."""
    while before := carries_on(chain[0][0].workflow_execution_started_event_attributes):
        if len(chain) >= MAX_EXECUTIONS:
            return f"only the latest {counted(MAX_EXECUTIONS, 'execution')} are told"
        events = await _events(client, workflow_id, before)
        if events is None:
            return "the server does not have it any more"
        chain.insert(0, events)
    return ""


def story_lines(story: Story) -> list[str]:
    """Return a story for people: a line a beat, with its time and how long after the start."""
    lines = [f"{named(story.workflow_id)}  {story.workflow_type}  {named(story.status)}"]
    lines.append(f"run {named(story.run_id)}, began {moment(story.began)}")
    if story.earlier:
        lines.append(
            f"told with the earlier executions that it carries on: {listed(story.earlier)}"
        )
    for told in story.beats:
        after = f"+{span(told.at - story.began)}"
        text = with_times_told(told.text)
        lines.append(f"{moment(told.at)}  {after:<12}  {told.kind:<10}  {text}")
    return lines
