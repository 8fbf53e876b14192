"""Checks start, list and show against a real server and worker."""

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import (
    MOST_SECONDS,
    TRIAGE,
    Stack,
    eventually,
    id_in,
    write_request,
)
from triage.contracts.response import TriageResponse
from triage.contracts.state import StateView

NOBODY = {"TRIAGE_TASK_QUEUE": "nobody-polls-this"}


def test_a_run_can_be_followed_to_its_response(stack: Stack, request_file: Path) -> None:
    """With --wait the answer is the response: one JSON document of twelve fields, status 0."""
    answer = stack.triage("start", request_file, "--wait", "--format", "json")
    assert 0 == answer.status, answer.err
    assert list(TriageResponse.model_fields) == list(answer.json())
    assert ("completed", f"run-{id_in(request_file)}") == (
        answer.json()["status"],
        answer.json()["run_id"],
    )


def test_a_start_answers_with_the_id(stack: Stack, request_file: Path) -> None:
    """Without --wait the answer is the workflow id alone, which the next command takes."""
    answer = stack.triage("start", "-", stdin=request_file.read_bytes())
    assert (0, f"triage-{id_in(request_file)}\n") == (answer.status, answer.out)
    assert "triage show" in answer.err


def test_an_id_that_exists_is_refused(stack: Stack, request_file: Path) -> None:
    """A second start under one id never shows the first run's answer, running or ended."""
    first = stack.triage("start", request_file, "--wait", "--format", "json")
    second = stack.triage("start", request_file, "--wait", "--format", "json")
    assert (0, 1, "") == (first.status, second.status, second.out)
    assert "exists already" in second.err
    waiting = f"twice-{id_in(request_file)}"
    stack.triage("start", request_file, "--id", waiting, env=NOBODY)
    again = stack.triage("start", request_file, "--id", waiting)
    assert (1, "") == (again.status, again.out)


def test_options_come_from_a_file_and_flags_win(
    stack: Stack, request_file: Path, tmp_path: Path
) -> None:
    """An options file is sent with the request, and --mode is stronger than its mode."""
    options = tmp_path / "options.json"
    options.write_text(json.dumps({"mode": "approve", "max_steps": 1}))
    answer = stack.triage(
        *("start", request_file, "--options", options, "--mode", "shadow"),
        *("--wait", "--format", "json"),
    )
    assert "max_steps_exceeded" == answer.json()["failure"]


def test_text_names_who_fixes_a_failure(stack: Stack, request_file: Path, tmp_path: Path) -> None:
    """A failure is shown with its group, the owner who fixes it and the next step."""
    options = tmp_path / "options.json"
    options.write_text(json.dumps({"max_steps": 0}))
    stack.triage("start", request_file, "--options", options, "--wait")
    shown = stack.triage("show", id_in(request_file))
    assert 0 == shown.status, shown.err
    assert "max_steps_exceeded (orchestration and state)" in shown.out
    assert "fixed by    operations" in shown.out
    assert "next step" in shown.out


def test_show_as_json_is_the_state_query(stack: Stack, request_file: Path) -> None:
    """A run is found by its request id too; JSON is the state query's answer and both ids."""
    stack.triage("start", request_file, "--wait")
    name = id_in(request_file)
    shown = stack.triage("show", name, "--format", "json")
    queried = stack.temporal("workflow", "query", "-w", f"triage-{name}", "--name", "state")
    # The temporal program prints an empty list as null.
    [told] = queried["queryResult"]
    document = shown.json()
    assert name == document.pop("request_id")
    assert (f"triage-{name}", None) == (document.pop("workflow_id"), document.pop("review"))
    assert {k: v or None for k, v in told.items()} == {k: v or None for k, v in document.items()}
    assert StateView.model_validate_json(json.dumps(document)).response


def test_show_tells_people_everything(stack: Stack, request_file: Path) -> None:
    """The text form has version, decisions, evidence, spending, provenance and response."""
    stack.triage("start", request_file, "--wait")
    shown = stack.triage("show", id_in(request_file))
    for part in (
        "completed at version 6",
        "step 1  call_tool  lookup_component_owner",
        "owners-api",
        "spent",
        "provenance",
        "backend-team",
    ):
        assert part in shown.out


def test_list_shows_runs_and_who_waits(stack: Stack, request_file: Path) -> None:
    """--pending lists exactly the runs that wait for a person: since when, for what, until when."""
    waiting = f"list-{id_in(request_file)}"
    follower = stack.waiting(request_file, waiting)
    row = stack.listed(waiting, "--pending")
    everything = stack.rows(waiting)
    table = stack.triage("list", "--pending")
    stack.triage("reject", waiting, "op-6", "--version", "6")
    assert eventually(lambda: not stack.rows(waiting, "--pending"))
    assert 1 == len(everything)
    assert row["waiting_since"]
    assert ("op-6", 6, None) == (
        *(row["pending"][name] for name in ("operation_id", "version")),
        row["unasked"],
    )
    assert (False, None) == (row["too_few_may_approve"], row["may_approve"])
    [line] = [line for line in table.out.splitlines() if waiting in line]
    cells = re.split(r"\s{2,}", line)
    assert ["op-6", "6", '"bug", "component:api"'] == cells[3:6]
    assert "(in 2 d 23 h" in line
    assert "review_required" == follower.finish().json()["status"]


@pytest.mark.parametrize(
    "arguments",
    [("show",), ("approve", "op-6", "--version", "6"), ("reject", "op-6", "--version", "6")],
    ids=lambda given: given[0],
)
def test_a_run_that_does_not_exist(stack: Stack, arguments: tuple[str, ...]) -> None:
    """An unknown id is told in a sentence, with status 1."""
    command, *rest = arguments
    answer = stack.triage(command, "no-such-run", *rest)
    assert (1, "") == (answer.status, answer.out)
    assert "there is no run no-such-run, nor triage-no-such-run" in answer.err


def test_without_a_worker_nothing_hangs(stack: Stack, request_file: Path) -> None:
    """Where nobody polls, start says so, and show and approve end with status 3."""
    started = stack.triage("start", request_file, env=NOBODY)
    assert 0 == started.status
    assert "no worker polls" in started.err
    name = id_in(request_file)
    shown = stack.triage("show", name)
    decided = stack.triage("approve", name, "op-6", "--version", "6")
    assert [(3, ""), (3, "")] == [(a.status, a.out) for a in (shown, decided)]
    assert "nothing was sent" in decided.err
    assert "triage up" in shown.err


def test_waiting_without_a_worker_is_told(stack: Stack, request_file: Path) -> None:
    """A --wait that nobody serves says so instead of staying silent, and Ctrl-C ends it."""
    process = subprocess.Popen(
        [TRIAGE, "start", str(request_file), "--wait"],
        env=stack.up.environment | NOBODY,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    assert any("no worker polls" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=MOST_SECONDS)
    name = f"triage-{id_in(request_file)}"
    assert 130 == process.returncode
    assert f"the run goes on: 'triage show {name}' shows where it stands" in said


def test_a_terminated_run_has_no_outcome(stack: Stack, request_file: Path) -> None:
    """A run that was terminated has no response, and show says so with status 1."""
    stack.triage("start", request_file, env=NOBODY)
    name = f"triage-{id_in(request_file)}"
    stack.temporal("workflow", "terminate", "-w", name, "--reason", "test")
    shown = stack.triage("show", name)
    assert 1 == shown.status
    assert "the run was terminated before it had a response" in shown.err
    assert eventually(lambda: "terminated (no response)" in _line(stack, name))


def _line(stack: Stack, name: str) -> str:
    """Return the line that `triage list` has of a run, if it has one yet."""
    lines = [line for line in stack.triage("list").out.splitlines() if name in line]
    assert len(lines) <= 1
    return "".join(lines)


def test_messages_of_strangers_are_shown_as_they_are(
    stack: Stack, request_file: Path, tmp_path: Path
) -> None:
    """Escapes and direction marks in ids, labels and approvers never reach the terminal."""
    name = f"strange-{id_in(request_file)}"
    follower = stack.waiting(request_file, name)
    envelope = {"operation_id": "op\x1b[2J", "version": 6, "approver": "ann\u202eeve"}
    signalled = json.dumps(envelope)
    stack.temporal("workflow", "signal", "-w", name, "--name", "approve", "--input", signalled)
    shown = stack.triage("show", name)
    stack.triage("reject", name, "op-6", "--version", "6")
    follower.finish()
    assert "not_pending" in shown.out
    assert r"op\u{1b}[2J" in shown.out
    assert r"ann\u{202e}eve" in shown.out
    assert shown.out.replace("\n", "").isprintable()


def test_a_vague_issue_goes_to_a_person(stack: Stack, tmp_path: Path) -> None:
    """A run that ends in review is an answer, too: status 0."""
    vague = write_request(tmp_path, title="Odd", body="Odd since last week", changed_paths=[])
    answer = stack.triage("start", vague, "--wait", "--format", "json")
    assert (0, "review_required") == (answer.status, answer.json()["status"])
