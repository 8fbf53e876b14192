"""Runs all code of docs/extending.md: a tool, a model and a tracker, each in a file of its own."""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus

from tests.docs.pages import page
from tests.workflow.decisions import a_request
from triage.contracts.names import ISSUE_TRIAGE, QUERY_PENDING, SIGNAL_APPROVE
from triage.contracts.response import Status, TriageResponse
from triage.contracts.search_attributes import TRIAGE_WAITING_SINCE
from triage.contracts.state import PendingView
from triage.embedded import EmbeddedServer, ServerOptions, WorkerProcess
from triage.policy.rules import LabelEffect
from triage.settings import Settings

PAGE = page("docs/extending.md")
MODULES = ("known_versions", "asks_versions", "file_tracker")
ISSUE = {
    "title": "Crash in 2.0",
    "body": "It crashes.",
    "state": "open",
    "labels": [],
    "removed": [],
    "author": "reporter",
    "events": [],
}


def _write_modules(folder: Path) -> None:
    """Write each block of Python into the file that its first line names."""
    for block in PAGE.blocks("python"):
        name = block.body.splitlines()[0].removeprefix("# ")
        (folder / name).write_text(block.body)
    assert {f"{name}.py" for name in MODULES} == {file.name for file in folder.glob("*.py")}


def _write_issues(home: Path) -> Path:
    repository = home / "issues" / "acme"
    repository.mkdir(parents=True)
    (repository / "labels.json").write_text(json.dumps(["bug", "feature"]))
    issue = repository / "7.json"
    issue.write_text(json.dumps(ISSUE))
    return issue


async def _until_it_waits(run: Any) -> PendingView:  # noqa: ANN401 - a handle of any type
    while (seen := await run.describe()).typed_search_attributes.get(TRIAGE_WAITING_SINCE) is None:
        assert WorkflowExecutionStatus.RUNNING is seen.status, await run.result()
        await asyncio.sleep(0.05)
    pending: PendingView = await run.query(QUERY_PENDING, result_type=PendingView)
    return pending


async def test_a_run_on_what_three_files_add(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model calls the tool, its answer rests on it, and the tracker gets the label, once."""
    modules = tmp_path / "modules"
    modules.mkdir()
    _write_modules(modules)
    issue = _write_issues(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(modules))
    settings = Settings(
        home=tmp_path,
        local_trust=True,
        model="x-versions:2.0",
        tracker="x-files",
        extensions=MODULES,
    )
    context = {"repository": "acme", "issue": "7"}
    async with (
        EmbeddedServer(ServerOptions(db_filename=tmp_path / "temporal.db")) as server,
        WorkerProcess(settings, server.environment(), log=tmp_path / "worker.log"),
    ):
        run = await server.client.start_workflow(
            ISSUE_TRIAGE,
            args=[a_request(), {"mode": "approve", "context": context}],
            id="w",
            task_queue=settings.task_queue,
            result_type=TriageResponse,
        )
        pending = await _until_it_waits(run)
        assert (("bug",), "x-files") == (pending.labels_after, pending.target["tracker"])
        review = {"operation_id": pending.operation_id, "version": pending.version}
        await run.signal(SIGNAL_APPROVE, {**review, "approver": "maintainer"})
        response = await run.result()
    assert (Status.COMPLETED, "bug", ("lookup_version", "apply_labels")) == (
        response.status,
        response.route,
        response.tool_sequence,
    )
    written = json.loads(issue.read_text())
    assert (["bug"], 1) == (written["labels"], len(written["events"]))


def test_the_label_rule_is_one() -> None:
    """The lines of the page say what two labels do, in the words of the rules."""
    labels = tomllib.loads(PAGE.blocks("toml")[0].body)["labels"]
    assert {LabelEffect.CONTROL, LabelEffect.DESCRIPTIVE} == {*map(LabelEffect, labels.values())}
