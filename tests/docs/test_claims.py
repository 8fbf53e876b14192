"""Shows by runs what docs/architecture.md and the decisions say of histories and writes."""

from __future__ import annotations

import json
import re
import time
from typing import Any, Final

import pytest

from benchmarks.counters import PUBLISHED_SECONDS, read_actions
from tests.docs.pages import page
from tests.docs.terminal import LINE_SECONDS, Terminal, lines_of
from tests.replay.histories import payloads

START: Final = (
    "temporal workflow start --type IssueTriage --task-queue triage --fail-existing"
    " --input-file fixtures/requests/{request}.json --workflow-id {run}"
)
UPDATE: Final = "update execute --name review --input-file fixtures/approvals/review.json"
SIGNAL: Final = "signal --name approve --input-file fixtures/approvals/approve.json"
APPROVE_MODE: Final = " --input-file fixtures/options/approve.json"
FIXTURE: Final = "SYNTHETIC EDUCATIONAL EXAMPLE — orchestration fixture only"


def _done(terminal: Terminal, command: str) -> str:
    done = terminal.run(command)
    assert 0 == done.returncode, f"{command}\n{done.stdout}"
    return done.stdout


def _approve(terminal: Terminal, run: str, how: str = UPDATE) -> None:
    """Approve what the run waits for, once it does.

    The history is asked, not the run: a query while a local activity runs costs a task more.
    """
    deadline = time.monotonic() + LINE_SECONDS
    while not any("timerStarted" in name for event in _history(terminal, run) for name in event):
        assert time.monotonic() < deadline
    query = f"temporal workflow query --workflow-id {run} --type pending"
    assert '"op-6"' in _done(terminal, query)
    _done(terminal, f"temporal workflow {how} --workflow-id {run}")
    _done(terminal, f"temporal workflow result --workflow-id {run}")


def _history(terminal: Terminal, run: str) -> list[dict[str, Any]]:
    shown = _done(terminal, f"temporal workflow show --workflow-id {run} --output json")
    events: list[dict[str, Any]] = json.loads(shown)["events"]
    return events


def test_a_triage_costs_the_events_that_the_page_counts(terminal: Terminal) -> None:
    """A triage with one read, and one with a write approved either way, have the events given."""
    _done(terminal, START.format(request="docs-gap", run="read"))
    _done(terminal, "temporal workflow result --workflow-id read")
    for run, request, how in (("signal", "ui-bug", SIGNAL), ("update", "docs-gap", UPDATE)):
        _done(terminal, START.format(request=request, run=run) + APPROVE_MODE)
        _approve(terminal, run, how)
    text = " ".join(page("docs/architecture.md").text.split())
    counts = [len(_history(terminal, run)) for run in ("read", "signal", "update")]
    assert f"a triage with one read is {counts[0]} events" in text
    assert f"approved by a signal {counts[1]} events" in text
    assert f"approved by an update {counts[2]} events" in text
    sizes = re.findall(r"about ([\d.]+) KB", text)
    measured = [_kilobytes(terminal, run) for run in ("read", "signal")]
    assert measured == pytest.approx([float(size) for size in sizes], rel=0.1)


def _kilobytes(terminal: Terminal, run: str) -> float:
    shown = _done(terminal, f"temporal workflow describe --workflow-id {run} --output json")
    return int(json.loads(shown)["workflowExecutionInfo"]["historySizeBytes"]) / 1000


def test_a_triage_costs_the_actions_that_adr_23_counts(terminal: Terminal) -> None:
    """The server's own counter of billable actions grows by as much as the decision says."""
    before = _actions(terminal)
    _done(terminal, START.format(request="docs-gap", run="read-billed"))
    _done(terminal, "temporal workflow result --workflow-id read-billed")
    between = _actions(terminal)
    _done(terminal, START.format(request="ui-bug", run="write-billed") + APPROVE_MODE)
    _approve(terminal, "write-billed", SIGNAL)
    after = _actions(terminal)
    rows = page("docs/adr/0023-local-models.md").table(
        "", "events", "actions", "events by API", "actions by API"
    )
    written = [row[2] for row in rows]
    assert [str(between - before), f"{after - between + 1}, one of them a heartbeat"] == written


def _actions(terminal: Terminal) -> int:
    """Count actions, but for our own questions, and heartbeats, whose number depends on time."""
    time.sleep(PUBLISHED_SECONDS)
    return read_actions(terminal.folder / ".triage/temporal.log")


def test_the_request_is_in_the_history_once(terminal: Terminal) -> None:
    """Only the start event holds the request's text; no activity, marker or result repeats it."""
    _done(terminal, START.format(request="feature", run="quiet") + APPROVE_MODE)
    _approve(terminal, "quiet")
    body = json.loads((terminal.folder / "fixtures/requests/feature.json").read_text())["body"]
    holders = [
        event["eventType"]
        for event in _history(terminal, "quiet")
        if any(body[:20].encode() in data for data in payloads(event))
    ]
    assert ["EVENT_TYPE_WORKFLOW_EXECUTION_STARTED"] == holders


def test_a_reset_run_writes_nothing_again(terminal: Terminal) -> None:
    """After a reset the run waits for a new approval, and the ledger gives the first receipt."""
    _done(terminal, START.format(request="api-bug", run="reset") + APPROVE_MODE)
    _approve(terminal, "reset")
    _done(
        terminal,
        "temporal workflow reset --workflow-id reset --type FirstWorkflowTask --reason test",
    )
    _approve(terminal, "reset")
    listed = json.loads(terminal.run("triage operations --format json 2>/dev/null").stdout)
    assert ["applied"] == [row["state"] for row in listed if row["workflow_id"] == "reset"]
    shown = terminal.run("triage issues show ISSUE-201 --format json 2>/dev/null").stdout
    events = [(e["action"], e["label"]) for e in json.loads(shown)["events"] if e["label"]]
    assert sorted(set(events)) == sorted(events)


def test_the_page_s_line_continues_an_ended_run(terminal: Terminal) -> None:
    """The plain line starts a run that names the ended one, and waits at its version plus three."""
    _done(terminal, "triage start fixtures/requests/api-bug.json --wait")
    shown = _done(terminal, "temporal workflow describe -w triage-ISSUE-201 --output json")
    first = json.loads(shown)["workflowExecutionInfo"]["firstRunId"]
    [line] = [one for one in lines_of("docs/architecture.md") if "continued_from" in one.command]
    _done(terminal, line.command.replace("FIRST-RUN-ID", first))
    deadline = time.monotonic() + LINE_SECONDS
    query = "temporal workflow query -w triage-ISSUE-201.2 --type pending"
    while '"version":9' not in _done(terminal, query):
        assert time.monotonic() < deadline
    named = _done(terminal, "triage show triage-ISSUE-201.2")
    assert "continues   triage-ISSUE-201 from version 6" in named
    _done(terminal, "temporal workflow terminate -w triage-ISSUE-201.2")


def test_writes_are_checked_in_the_order_of_adr_7(terminal: Terminal) -> None:
    """A missing approval is refused first, then another issue, then an unknown label.

    And the approval of a version does not cover the same operation at the next one.
    """
    wild, elsewhere = _write("ISSUE-1", "wild"), _write("ISSUE-2", "bug")
    repeated = _write("ISSUE-1", "bug")
    cases = [
        _case("unknown label", [wild], {}, "approval_required"),
        _case("unknown label, approved", [wild], {"op-1": 3}, "policy_block"),
        _case("another issue", [elsewhere], {}, "approval_required"),
        _case("another issue, approved", [elsewhere], {"op-1": 3}, "policy_block"),
        _case("repeated", [repeated, repeated], {"op-1": 3}, "approval_required"),
    ]
    document = {"fixture": FIXTURE, "cases": cases}
    (terminal.folder / "adr-7.json").write_text(json.dumps(document), encoding="utf-8")
    shown = _done(terminal, "triage evaluate adr-7.json --format json 2>/dev/null")
    expected = {case["id"]: case["expected"]["failure"] for case in cases}
    actual = {record["id"]: record["actual"]["failure"] for record in json.loads(shown)["records"]}
    assert expected == actual


def _case(
    name: str, decisions: list[dict[str, Any]], approvals: dict[str, int], failure: str
) -> dict[str, Any]:
    return {
        "id": name,
        "request": {
            "request_id": "ISSUE-1",
            "title": "A write",
            "body": "Made up for a test.",
            "source": "test",
            "changed_paths": [],
        },
        "options": {"approvals": approvals},
        "decisions": decisions,
        "expected": {
            "status": "review_required",
            "route": None,
            "failure": failure,
            "tool_sequence": ["apply_labels"] * len(decisions),
            "retries": 0,
        },
    }


def _write(issue: str, label: str) -> dict[str, Any]:
    arguments = {"issue_id": issue, "labels": [label]}
    return {
        "kind": "call_tool",
        "tool": {
            "call_id": "call-1",
            "name": "apply_labels",
            "arguments": arguments,
            "operation_id": "op-1",
        },
    }
