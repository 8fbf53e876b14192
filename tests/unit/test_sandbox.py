"""The sandbox loads what defines a workflow for each run, and everything else once."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest
from temporalio.client import Client

import worker
from triage.replay import read_history, replay_failure
from triage.sandbox import sandbox_for
from triage.settings import Role, Settings

DEFINITIONS = {workflow.__module__ for workflow in worker.WORKFLOWS}
HISTORIES = Path(__file__).parents[2] / "fixtures" / "histories"


def test_definitions_alone_are_isolated() -> None:
    """All parts of the workflows but what defines one are loaded once, and `triage` with them."""
    folder = Path(worker.__file__).parent / "workflows"
    modules = {f"workflows.{file.stem}" for file in folder.glob("*.py")} - {"workflows.__init__"}
    passed = sandbox_for(worker.WORKFLOWS).restrictions.passthrough_modules
    assert {"triage", *modules} - DEFINITIONS == {
        name for name in passed if name.partition(".")[0] in {"triage", "workflows"}
    }


async def test_a_run_loads_no_more_than_its_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaying a run loads the modules that define workflows, and none of their parts."""
    loaded: list[str] = []
    load = SourceFileLoader.exec_module

    def watched(loader: SourceFileLoader, module: ModuleType) -> None:
        loaded.append(module.__name__)
        load(loader, module)

    history = read_history(HISTORIES / "completed.json")
    await replay_failure(history, worker.WORKFLOWS)
    monkeypatch.setattr(SourceFileLoader, "exec_module", watched)
    await replay_failure(history, worker.WORKFLOWS)
    assert {"workflows", *DEFINITIONS} == set(loaded)


def test_a_worker_runs_what_a_replay_replays() -> None:
    """The worker isolates its workflows exactly as a replay does."""
    settings = Settings(roles=(Role.DECIDE,))
    with (
        mock.patch.object(worker, "Worker") as made,
        mock.patch.object(worker, "decide_activities"),
    ):
        worker.build_workers(mock.create_autospec(Client), settings, mock.Mock())
    [made_with] = [call.kwargs["workflow_runner"] for call in made.call_args_list]
    assert sandbox_for(worker.WORKFLOWS).restrictions == made_with.restrictions
