"""Records the histories under fixtures/histories anew: `make histories`, or those of `NAMES`.

Every run of `tests.replay.catalogue` is carried through on a real server by the production
workers, has to end as the catalogue says, and replaces its file. Names and workflow ids stay;
times, run ids and what is derived from them change.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from temporalio.client import WorkflowFailureError, WorkflowHandle, WorkflowHistory

import worker
from tests.replay.catalogue import LAST, RECORDINGS
from tests.replay.commands import CommandWatch
from tests.replay.histories import (
    COMMANDS,
    FOLDER,
    INDEX,
    history_files,
    index_entry,
    read_index,
)
from tests.replay.recording import OPEN, Recording
from tests.replay.stage import Stage, opened_stage
from tests.replay.traces import traces, without_traces
from tests.workflow.runs import SECONDS, Run
from triage.connection import run_async
from triage.contracts.names import SIGNAL_EDIT
from triage.replay import read_history, replay_failure

SIDE_BY_SIDE: Final = 8


async def record(stage: Stage, recording: Recording) -> WorkflowHistory:
    """Carry one run through and return its history."""
    handle = await _handle(stage, recording)
    if recording.drive is not None:
        await recording.drive(stage, Run(handle))
    if recording.ends != OPEN and recording.first_of is None:
        async with asyncio.timeout(SECONDS):
            with suppress(WorkflowFailureError):
                await handle.result()
    history = await handle.fetch_history()
    entry = index_entry(history)
    if entry["ends"] != recording.ends:
        raise AssertionError(f"{recording.name} was to end {recording.ends}: {entry}")
    return history


async def _handle(stage: Stage, recording: Recording) -> WorkflowHandle[Any, Any]:
    """Start a run, or find the first execution of one that has been recorded."""
    if recording.first_of is None:
        return await _start(stage, recording)
    latest = await stage.client.get_workflow_handle(recording.first_of).describe()
    first = latest.raw_description.workflow_execution_info.first_run_id
    return stage.client.get_workflow_handle(recording.first_of, run_id=first)


async def _start(stage: Stage, recording: Recording) -> WorkflowHandle[Any, Any]:
    inputs = recording.inputs
    if inputs is None:
        inputs = (recording.request, await _options(stage, recording))
    return await stage.client.start_workflow(
        recording.workflow,
        args=inputs,
        id=recording.name,
        task_queue=recording.queue,
        start_signal=SIGNAL_EDIT if recording.edit else None,
        start_signal_args=[recording.edit] if recording.edit else [],
    )


async def _options(stage: Stage, recording: Recording) -> dict[str, Any]:
    options = {"context": {"repository": recording.name}, **recording.options}
    if recording.prepare is not None:
        options |= await recording.prepare(stage, recording.name)
    if recording.script is not None:
        options["model"] = await stage.store_script(recording.script)
        if recording.thinks:
            stage.thoughts[recording.name] = stage.services.hold(recording.script)
    return options


async def record_some(stage: Stage, names: Sequence[str]) -> dict[str, WorkflowHistory]:
    """Record the runs of these names, one after the other, and leave the others as they are."""
    known = {recording.name: recording for recording in (*RECORDINGS, *LAST)}
    return {name: await record(stage, known[name]) for name in names}


async def record_all(stage: Stage) -> dict[str, WorkflowHistory]:
    """Record every run of the catalogue; those that harm the others come last."""
    turn = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(recording: Recording) -> WorkflowHistory:
        async with turn:
            return await record(stage, recording)

    own = [recording for recording in RECORDINGS if recording.first_of is None]
    histories = await asyncio.gather(*map(one, own))
    # Those that another run has brought about.
    others = [recording for recording in RECORDINGS if recording.first_of is not None]
    histories += [await record(stage, recording) for recording in others]
    last = [await record(stage, recording) for recording in LAST]
    for thought in stage.thoughts.values():
        thought.set()
    names = [recording.name for recording in (*own, *others, *LAST)]
    return dict(zip(names, [*histories, *last], strict=True))


def write(histories: dict[str, WorkflowHistory], *, keeps_others: bool = False) -> None:
    """Replace the files and their index."""
    FOLDER.mkdir(exist_ok=True)
    index = dict(read_index()) if keeps_others else {}
    for old in () if keeps_others else history_files():
        old.unlink()
    for name, history in histories.items():
        text = without_traces(history)
        if found := list(traces(json.loads(text))):
            raise AssertionError(f"{name} still tells where it was recorded: {found}")
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    index |= {name: index_entry(history) for name, history in histories.items()}
    _write_json(INDEX, dict(sorted(index.items())))


async def write_commands(files: Sequence[Path]) -> None:
    """Replace the list of commands that the recorded runs issue."""
    lines: set[str] = set()
    for file in files:
        watch = CommandWatch()
        error = await replay_failure(read_history(file), worker.WORKFLOWS, interceptors=[watch])
        if error is not None:
            raise AssertionError(f"{file.name} does not replay: {error}")
        lines.update(watch.lines)
    _write_json(COMMANDS, sorted(lines))


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


async def main() -> int:
    """Record everything, the runs that are named, or only the commands with ``--commands``."""
    logging.disable()  # the faults are meant
    names = sys.argv[1:]
    if names != ["--commands"]:
        with tempfile.TemporaryDirectory() as home:
            async with opened_stage(Path(home)) as stage:
                found = await (record_some(stage, names) if names else record_all(stage))
        write(found, keeps_others=bool(names))
    await write_commands(history_files())
    print(f"recorded {len(history_files())} histories in {FOLDER}")  # noqa: T201 - its answer
    return 0


if __name__ == "__main__":
    sys.exit(run_async(main()))
