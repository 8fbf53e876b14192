"""`triage outcomes` reads what became of labels, and counts what people accepted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import update

from tests.cli.conftest import Stack
from tests.cli.in_process import Typed
from tests.cli.stored import in_store
from tests.cli.test_undoing import _applied
from triage.cli.outcomes import _only_suggested
from triage.storage.engine import Store
from triage.storage.schema import operations
from triage.trackers.local import LocalTracker
from triage.trackers.outcomes import Mark


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """Commands, and one applied write of ``bug`` and ``component:api`` on issue 1."""
    in_store(tmp_path, _applied)
    return Typed(tmp_path, monkeypatch, capsys)


async def _removes(store: Store) -> None:
    await LocalTracker(store).remove_label("local", "1", "bug", by="ann")


def test_it_counts_by_label_and_component(typed: Typed) -> None:
    """One was kept, one was taken off; only the kept one, which ann approved, is accepted."""
    in_store(typed.home, _removes)
    report = typed("outcomes", "--no-runs", "--format", "json").json()
    rows = {row["label"]: row for row in report["rows"]}
    assert (1, 0, "component:api") == (
        rows["bug"]["removed"],
        rows["bug"]["accepted"],
        rows["bug"]["component"],
    )
    assert (1, 1) == (rows["component:api"]["retained"], rows["component:api"]["accepted"])
    assert (1, 0, 0, False) == tuple(
        report[name]
        for name in ("accepted", "cost_micros", "cost_per_accepted_micros", "runs_read")
    )
    assert ["removed", "retained"] == [label["became"] for label in report["labels"]]


def test_an_undo_shows_as_reverted(typed: Typed) -> None:
    """What a person undid is no removal by hand, and nothing is accepted."""
    assert 0 == typed("undo", "op_1", "--as", "ann", "--yes").status
    answer = typed("outcomes", "--no-runs")
    assert (0, True) == (answer.status, "no label was accepted" in answer.out)
    assert 2 == sum(" 1 " in line for line in answer.out.splitlines() if "api" in line)


@pytest.mark.parametrize("target", ["{}", "[]", "x"])
def test_a_row_that_says_no_issue_is_unknown_and_hides_no_other(typed: Typed, target: str) -> None:
    """Somebody edited the ledger: what became of that write nobody knows, nor is it undone."""

    async def edits(store: Store) -> None:
        async with store.write() as connection:
            await connection.execute(update(operations).values(target=target))

    in_store(typed.home, edits)
    report = typed("outcomes", "--no-runs", "--format", "json").json()
    assert ["unknown", "unknown"] == [label["became"] for label in report["labels"]]
    undone = typed("undo", "op_1", "--as", "ann", "--yes")
    assert (1, True) == (undone.status, "does not say where it went" in undone.err)


def test_a_suggestion_that_was_written_is_counted_once() -> None:
    """In whatever letters the repository is named: what was only suggested is something else."""
    written, other = _mark("acme/shop", "bug"), _mark("Acme/Shop", "feature")
    suggested = [_mark("Acme/Shop", "bug"), other, _mark("acme/shop", "feature")]
    assert ["feature"] == [mark.label for mark in _only_suggested(suggested, [written])]


def _mark(repository: str, label: str) -> Mark:
    return Mark(
        workflow_id="w",
        tracker="github",
        repository=repository,
        issue="1",
        label=label,
        component="",
        at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_what_is_long_ago_is_left_out(typed: Typed) -> None:
    """Only writes of the days that are asked for count, and nothing to tell is said."""
    answer = typed("outcomes", "--since", "0", "--no-runs")
    assert (0, "", True) == (answer.status, answer.out, "no label was written" in answer.err)


def test_without_a_server_the_writes_are_still_told(typed: Typed) -> None:
    """The ledger and the tracker suffice for what was written, and what is missing is said."""
    answer = typed("outcomes", env={"TEMPORAL_ADDRESS": "127.0.0.1:1"})
    assert (0, True) == (answer.status, "what runs only suggested is not counted" in answer.err)
    assert "component:api" in answer.out


@pytest.mark.long
def test_what_a_run_suggested_is_taken_up_by_a_person(stack: Stack) -> None:
    """A run in suggest mode wrote nothing; of its labels the one that ann put on is accepted.

    That a backfill tries the issue again afterwards takes nothing of that back.
    """
    issue = "900"
    said = ("--title", "API crash", "--body", "backend/api.py fails", "--number", issue)
    stack.triage("issues", "add", *said, "--create")
    answer = stack.triage("start", f"local#{issue}", "--wait", "--format", "json")
    labels = answer.json()["labels"]
    assert labels == ["bug", "component:api"], answer.err

    async def takes_up(store: Store) -> None:
        await LocalTracker(store).add_label("local", issue, "bug", by="ann")

    in_store(stack.up.home, takes_up)
    tried = stack.triage("backfill", "local", "--per-minute", "600")
    assert 0 == tried.status, tried.err
    report = stack.triage("outcomes", "--since", "1", "--format", "json").json()
    mine = {
        label["label"]: (label["written"], label["became"], label["accepted"])
        for label in report["labels"]
        if label["target"]["issue"] == issue
    }
    expected = {"bug": (False, "retained", True), "component:api": (False, "unknown", False)}
    assert (True, expected) == (report["runs_read"], mine)
