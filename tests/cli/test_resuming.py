"""Checks that an ended run is continued as a new one, against a real server and worker."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from tests.cli.conftest import Answer, Stack, Triage, id_in, write_request
from tests.cli.stored import in_store
from tests.workflow.decisions import Script, final, label, lookup
from triage.contracts.canonical import canonical_json
from triage.storage.documents import SHARED, DocumentKind, DocumentStore
from triage.storage.engine import Store

NOBODY = {"TRIAGE_TASK_QUEUE": "nobody-polls-this"}


def _model(stack: Stack, script: Script) -> str:
    """Store decisions where the worker finds them, and name the model that plays them."""

    async def put(store: Store) -> str:
        return await DocumentStore(store).put(SHARED, DocumentKind.SCRIPT, canonical_json(script))

    return f"recorded:{in_store(stack.up.home, put)}"


def _options(folder: Path, **options: JsonValue) -> Path:
    path = folder / "options.json"
    path.write_text(json.dumps(options))
    return path


def _ended(stack: Stack, request: Path, *more: str | Path) -> str:
    """Start a run, see it end, and return its id."""
    answer = stack.triage("start", request, *more, "--wait", "--format", "json")
    assert 0 == answer.status, answer.err
    return f"triage-{id_in(request)}"


def _inputs(stack: Stack, workflow_id: str) -> list[Any]:
    """Return what a run was started with: its request and its options."""
    history = stack.temporal("workflow", "show", "-w", workflow_id)
    start = history["events"][0]["workflowExecutionStartedEventAttributes"]
    return [json.loads(base64.b64decode(item["data"])) for item in start["input"]["payloads"]]


def _pending(stack: Stack, workflow_id: str) -> dict[str, Any]:
    """Return what a run waits for, once it does."""
    while True:
        shown = stack.triage("show", workflow_id, "--format", "json").json()
        assert shown["response"] is None, shown
        if shown["pending"]:
            pending: dict[str, Any] = shown["pending"]
            return pending


def _approve(stack: Stack, workflow_id: str) -> Answer:
    pending = _pending(stack, workflow_id)
    version = str(pending["version"])
    named = (workflow_id, pending["operation_id"], "--version", version)
    return stack.triage("approve", *named, "--as", "ann")


def _response(stack: Stack, workflow_id: str) -> dict[str, Any]:
    result = stack.temporal("workflow", "result", "-w", workflow_id)
    response: dict[str, Any] = result["result"]
    return response


def test_a_run_that_needed_an_approval_is_continued(
    stack: Stack, request_file: Path, tmp_path: Path
) -> None:
    """It waits, once, at a later version for an approval of its own; the label is written once."""
    issue = id_in(request_file)
    model = _model(stack, [lookup(), label(issue=issue), final("owners-api", labels=("bug",))])
    options = _options(tmp_path, model=model, mode="suggest")
    name = _ended(stack, request_file, "--options", options)
    before = stack.triage("show", name, "--format", "json").json()
    assert "approval_required" == before["response"]["failure"]
    resumed = stack.triage("resume", issue)
    assert (0, f"{name}.2\n") == (resumed.status, resumed.out), resumed.err
    assert f"continues {name} (review_required) from version {before['version']}" in resumed.err
    assert f"'triage show {name}.2' shows it" in resumed.err
    competing = [stack.triage("resume", name), stack.triage("resume", name, "--id", f"too-{name}")]
    assert [(1, "")] * 2 == [(answer.status, answer.out) for answer in competing]
    assert f"{name} was continued already, by now as {name}.2, which goes on" in competing[1].err
    assert before["version"] + 6 == _pending(stack, f"{name}.2")["version"]
    assert 0 == _approve(stack, f"{name}.2").status
    assert "completed" == _response(stack, f"{name}.2")["status"]
    assert before == stack.triage("show", name, "--format", "json").json()
    issue_shown = stack.triage("issues", "show", issue, "--format", "json").json()
    labels = [(event["action"], event["label"]) for event in issue_shown["events"]]
    assert 1 == labels.count(("added", "bug"))


def test_the_answer_names_the_link(stack: Stack, request_file: Path) -> None:
    """JSON has the new run's ids and exactly what it continues; `show` of it names that, too."""
    name = _ended(stack, request_file, "--mode", "shadow")
    resumed = stack.triage("resume", name, "--id", f"again-{name}", "--format", "json")
    assert 0 == resumed.status, resumed.err
    described = stack.temporal("workflow", "describe", "-w", name)
    link = {
        "workflow_id": name,
        "run_id": described["workflowExecutionInfo"]["firstRunId"],
        "version": 6,
        "trail": stack.temporal("workflow", "query", "-w", name, "--type", "state")["queryResult"][
            0
        ]["trail"],
    }
    document = resumed.json()
    assert link == document["continued_from"]
    assert (f"again-{name}", id_in(request_file)) == (
        document["workflow_id"],
        document["request_id"],
    )
    assert link == _inputs(stack, f"again-{name}")[1]["continued_from"]
    _pending(stack, f"again-{name}")
    assert (
        link == stack.triage("show", f"again-{name}", "--format", "json").json()["continued_from"]
    )
    shown = stack.triage("show", f"again-{name}").out.splitlines()
    assert f"continues   {name} from version 6" == shown[2]
    # A run of an id of its own is found in the server's list.
    stack.listed(f"again-{name}")
    second = stack.triage("resume", name)
    assert (1, "") == (second.status, second.out)
    assert f"{name} was continued already, by now as again-{name}" in second.err


def test_a_continuation_keeps_some_options_and_no_approval(
    stack: Stack, request_file: Path, tmp_path: Path
) -> None:
    """Where the issue is, model, grounding and budget stay; how far it may go is asked anew."""
    kept: dict[str, JsonValue] = {
        "model": "rules",
        "grounding": "entailed",
        "budget": {"seconds": 3_600},
        "context": {"repository": "kept", "author": "reporter"},
    }
    dropped: dict[str, JsonValue] = {
        "approvals": {"op-6": 6},
        "permitted_effects": [],
        "max_model_retries": 0,
    }
    options = _options(tmp_path, **kept, **dropped, max_steps=2)
    name = _ended(stack, request_file, "--options", options)
    stack.triage("resume", name, "--mode", "shadow", "--max-steps", "3")
    request, given = _inputs(stack, f"{name}.2")
    assert json.loads(request_file.read_text()) == request
    assert name == given.pop("continued_from")["workflow_id"]
    assert {**kept, "mode": "shadow", "max_steps": 3} == given


def test_the_request_is_the_one_that_was_edited(
    stack: Stack, request_file: Path, tmp_path: Path
) -> None:
    """The latest valid edit counts, --request changes it again, and ids go on in one series."""
    name = f"edited-{id_in(request_file)}"
    follower = stack.waiting(request_file, name)
    document = json.loads(request_file.read_text())
    of_another = {**document, "title": "of another", "request_id": "R-other"}
    _edit(stack, name, {**document, "title": "first"})
    while _pending(stack, name)["version"] == 6:
        pass
    for edit in ({"title": "no request"}, of_another, {**document, "title": "second"}):
        _edit(stack, name, edit)
    # The second edit costs one step more than there are.
    assert "max_steps_exceeded" == follower.finish().json()["failure"]
    stack.triage("resume", name, "--mode", "shadow", "--wait")
    changed = write_request(tmp_path, **{**document, "title": "third"})
    third = stack.triage("resume", f"{name}.2", "--request", changed, "--mode", "shadow")
    assert 0 == third.status, third.err
    again = stack.triage("resume", name)
    assert (1, "") == (again.status, again.out)
    assert f"continued already, by now as {name}.3" in again.err
    titles = [_inputs(stack, f"{name}.{number}")[0]["title"] for number in (2, 3)]
    assert ["second", "third"] == titles
    assert f"{name}.2" == _inputs(stack, f"{name}.3")[1]["continued_from"]["workflow_id"]


def _edit(stack: Stack, workflow_id: str, edit: object) -> None:
    signal = ("--name", "edit", "--input", json.dumps(edit))
    stack.temporal("workflow", "signal", "-w", workflow_id, *signal)


def test_a_continuation_that_never_began_is_followed_by_another(
    stack: Stack, request_file: Path
) -> None:
    """One that was stopped before a worker saw it keeps nobody from continuing the run."""
    name = _ended(stack, request_file)
    first = stack.triage("resume", name, env=NOBODY)
    assert f"{name}.2\n" == first.out, first.err
    stack.temporal("workflow", "terminate", "-w", f"{name}.2")
    second = stack.triage("resume", name, "--mode", "shadow")
    assert (0, f"{name}.3\n") == (second.status, second.out), second.err


def test_a_run_that_was_stopped_is_continued(stack: Stack, request_file: Path) -> None:
    """A run that somebody terminated while it waited goes on in a new one, with its evidence."""
    name = f"stopped-{id_in(request_file)}"
    follower = stack.waiting(request_file, name)
    stack.temporal("workflow", "terminate", "-w", name)
    follower.finish()
    answer = stack.triage("resume", name, "--mode", "shadow", "--wait", "--format", "json")
    assert ("completed", ["owners-api"], 1) == tuple(
        answer.json()[name] for name in ("status", "evidence_ids", "steps")
    )
    assert f"continues {name} (terminated) from version 7" in answer.err


def test_a_run_that_goes_on_is_not_continued(stack: Stack, request_file: Path) -> None:
    """Whoever resumes a run that waits is told how to decide on it."""
    name = f"open-{id_in(request_file)}"
    follower = stack.waiting(request_file, name)
    answer = stack.triage("resume", name)
    stack.triage("reject", name, "op-6", "--version", "6")
    follower.finish()
    assert (1, "") == (answer.status, answer.out)
    assert f"{name} has not ended" in answer.err
    for way in ("triage approve", "triage reject", "triage edit"):
        assert way in answer.err


def test_what_never_began_is_not_continued(stack: Stack, request_file: Path) -> None:
    """Runs that were refused as invalid, or stopped before a worker saw them, have nothing."""
    invalid = f"invalid-{id_in(request_file)}"
    start = ("--type", "IssueTriage", "--task-queue", "triage", "--input", "{}")
    stack.temporal("workflow", "execute", "-w", invalid, *start)
    unseen = f"unseen-{id_in(request_file)}"
    stack.triage("start", request_file, "--id", unseen, env=NOBODY)
    stack.temporal("workflow", "terminate", "-w", unseen)
    loop = f"loop-{id_in(request_file)}"
    stack.temporal(*("workflow", "start", "-w", loop), "--type", "EvidenceLoop", "-t", "nobody")
    answers = [stack.triage("resume", name) for name in (invalid, unseen, loop)]
    stack.temporal("workflow", "terminate", "-w", loop)
    assert [(1, "")] * 3 == [(answer.status, answer.out) for answer in answers]
    for answer, why in zip(answers, ("it never began", "before it had", "no triage"), strict=True):
        assert why in answer.err


def test_a_run_that_nobody_knows_is_not_continued(stack: Stack) -> None:
    """A run that never was, or whose history has expired, is told with what can be done."""
    answer = stack.triage("resume", "never-was")
    assert (1, "") == (answer.status, answer.out)
    assert "there is no run never-was" in answer.err
    assert "one whose history has expired cannot be continued" in answer.err


def test_an_id_that_is_taken_is_refused(stack: Stack, request_file: Path, tmp_path: Path) -> None:
    """The server refuses a second run under one id, and another request is no continuation."""
    name = _ended(stack, request_file)
    taken = stack.triage("resume", name, "--id", name)
    other = stack.triage("resume", name, "--request", write_request(tmp_path))
    assert [(1, ""), (2, "")] == [(answer.status, answer.out) for answer in (taken, other)]
    assert f"a run {name} exists already; nothing was started" in taken.err
    assert f"another request than {id_in(request_file)}" in other.err
    assert "there is no run" in stack.triage("show", f"{name}.2").err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--mode", "reckless"),
        ("--max-steps", "-1"),
        ("--max-steps", "101"),
        ("--id", " "),
        ("--request", "no-such-file.json"),
    ],
    ids=" ".join,
)
def test_wrong_usage_needs_no_server(triage: Triage, arguments: tuple[str, ...]) -> None:
    """What cannot be right is said before anything is asked of a server."""
    answer = triage("resume", "any", *arguments)
    assert (2, "") == (answer.status, answer.out)


def test_without_a_server_nothing_hangs(triage: Triage) -> None:
    """A server that is not there is told as such."""
    assert (3, "") == ((answer := triage("resume", "any")).status, answer.out)
