"""Checks that a run's story is told from a file and from a server, with and without a worker."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import FIXTURES, Stack, Triage, id_in, write_request
from tests.replay.histories import history_files, read_index
from triage.cli.explaining import explain
from triage.cli.output import Format

HISTORIES = FIXTURES / "histories"
FILES = history_files()
BODY = "Since yesterday every call fails."


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_every_recorded_history_is_told(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each file has a story in lines that any terminal shows, without the issue's text."""
    explain(None, None, path, Format.TEXT)
    out, err = capsys.readouterr()
    response = read_index()[path.stem]["response"] or {}
    assert "" == err
    assert all(line.isprintable() for line in out.splitlines())
    assert BODY not in out
    for name in ("status", "failure"):
        assert (response.get(name) or "") in out


def test_a_file_is_told_in_text(triage: Triage) -> None:
    """A line a beat: when, how long after the start, what it is about, and what happened."""
    answer = triage("explain", "--file", HISTORIES / "review-rejected-by-signal.json")
    lines = answer.out.splitlines()
    assert (0, "") == (answer.status, answer.err)
    assert "review-rejected-by-signal  IssueTriage  review_required" == lines[0]
    assert lines[1].startswith("run ")
    assert any("  review      signal reject of op-6 at version 6 by" in line for line in lines)
    assert "next step: read the reason" in lines[-1]


def test_a_file_is_told_in_json(triage: Triage) -> None:
    """Programs get one document: whose story it is, how it ended, and what happened when."""
    file = HISTORIES / "completed-approved-by-update.json"
    document = triage("explain", "--file", file, "--format", "json").json()
    assert ["workflow_id", "run_id", "earlier_run_ids", "status", "story"] == list(document)
    assert ("completed-approved-by-update", "completed") == (
        document["workflow_id"],
        document["status"],
    )
    assert all({"at", "kind", "text"} <= set(beat) for beat in document["story"])
    assert ["started", "pinned"] == [beat["kind"] for beat in document["story"]][:2]
    assert "ended" == document["story"][-1]["kind"]


def test_a_history_can_come_through_a_pipe(triage: Triage) -> None:
    """What `temporal workflow show` prints can be piped in."""
    data = (HISTORIES / "completed.json").read_bytes()
    answer = triage("explain", "--file", "-", stdin=data)
    assert 0 == answer.status
    assert answer.out.startswith("completed  IssueTriage  completed\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain",),
        ("explain", "any", "--file", str(HISTORIES / "completed.json")),
        ("explain", "--file", "no-such.json"),
        ("explain", "--file", str(HISTORIES / "index.json")),
    ],
    ids=range(4),
)
def test_wrong_usage_is_told(triage: Triage, arguments: tuple[str, ...]) -> None:
    """Neither or both of run and file, and what is no history, are wrong usage."""
    answer = triage(*arguments)
    assert (2, "") == (answer.status, answer.out)
    assert answer.err.startswith("error: ")


def test_no_server_no_story(triage: Triage) -> None:
    """Without a server a run has no story, and that is told as such."""
    answer = triage("explain", "some-run")
    assert (3, "") == (answer.status, answer.out)


def test_a_live_run_is_told_while_it_waits_and_when_it_ended(
    stack: Stack, request_file: Path
) -> None:
    """A run that waits says what to type; once it ended, who approved the write."""
    name = f"explain-{id_in(request_file)}"
    follower = stack.waiting(request_file, name)
    waiting = stack.triage("explain", name)
    stack.triage("approve", name, "op-6", "--version", "6", "--as", "ann")
    follower.finish()
    ended = stack.triage("explain", name, "--format", "json").json()
    [write] = [beat for beat in ended["story"] if beat["kind"] == "write"]
    assert 0 == waiting.status
    assert f"triage approve {name} op-6 --version 6" in waiting.out.splitlines()[-1]
    assert "approved by ann (update): applied" in write["text"]
    assert "completed" == ended["status"]
    assert json.loads(request_file.read_text())["body"] not in json.dumps(ended)


def test_a_run_that_continued_as_new_is_one_story(
    stack: Stack, request_file: Path, tmp_path: Path
) -> None:
    """It is told over all its executions, or over one of them with what that was handed."""
    name = f"flooded-{id_in(request_file)}"
    follower = stack.waiting(request_file, name)
    noise = tmp_path / "noise.json"
    noise.write_text(json.dumps("x" * 1_900_000))
    for _ in range(4):
        signal = ("--name", "noise", "--input-file", str(noise))
        stack.temporal("workflow", "signal", "-w", name, *signal)
    stack.triage("approve", name, "op-6", "--version", "6", "--as", "ann")
    follower.finish()
    described = stack.temporal("workflow", "describe", "-w", name)["workflowExecutionInfo"]
    latest, first = described["execution"]["runId"], described["firstRunId"]
    whole = stack.triage("explain", name, "--format", "json").json()
    assert (latest, [first]) == (whole["run_id"], whole["earlier_run_ids"])
    kinds = [beat["kind"] for beat in whole["story"]]
    assert [1, 1, 1] == [kinds.count(kind) for kind in ("started", "carried", "waited")]
    assert 4 == kinds.count("message")
    assert {first, latest} == {beat["run_id"] for beat in whole["story"]}
    assert "completed" == whole["status"]
    begun = stack.triage("explain", name, "--run-id", first, "--format", "json").json()
    assert ("continued_as_new", "the wait goes on in the next execution") == (
        begun["status"],
        begun["story"][-2]["text"].partition(": ")[2],
    )
    [head, *_, ended] = stack.triage("explain", name, "--run-id", latest).out.splitlines()[2:]
    assert f"carrying on from the run {first}, at version 6 after 2 steps" in head
    assert "completed: route bug" in ended


def test_runs_that_do_not_exist(stack: Stack, tmp_path: Path) -> None:
    """Neither an unknown run nor an unknown execution of a known one has a story."""
    request = write_request(tmp_path)
    stack.triage("start", request, "--wait")
    nobody = stack.triage("explain", "no-such-run")
    never = "01a22911-0000-7000-8000-000000000000"
    other = stack.triage("explain", id_in(request), "--run", never)
    odd = stack.triage("explain", id_in(request), "--run", "not-a-run-id")
    assert [(1, ""), (1, ""), (1, "")] == [(a.status, a.out) for a in (nobody, other, odd)]
    assert "there is no run no-such-run" in nobody.err
    assert f"has no run {never}" in other.err
    assert 0 == stack.triage("explain", id_in(request)).status
