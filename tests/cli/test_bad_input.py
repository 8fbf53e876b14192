"""Checks that whatever a user hands to `start` ends in a sentence, without any server's help."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Stack, Triage, write_request

GOOD = {
    "request_id": "R-1",
    "title": "Broken",
    "body": "It breaks",
    "changed_paths": ["a.py"],
    "source": "test",
}


def _without(name: str) -> bytes:
    return json.dumps({key: value for key, value in GOOD.items() if key != name}).encode()


def _with(**changes: object) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


BAD_REQUESTS = {
    "empty": (b"", "request is not valid JSON"),
    "no-json": (
        b"{\n'request_id': 1}",
        "request is not valid JSON: line 2, column 1 (in standard input)",
    ),
    "two-documents": (b"{} {}", "request is not valid JSON"),
    "not-utf-8": (b'{"a": "\xff"}', "request is not valid JSON: byte 8 is not UTF-8"),
    "utf-16": ('{"a": 1}'.encode("utf-16"), "request is not valid JSON"),
    "null": (b"null", "request must be a JSON object"),
    "list": (b"[]", "request must be a JSON object"),
    "text": (b'"text"', "request must be a JSON object"),
    "nothing-in-it": (b"{}", "request.request_id: is missing"),
    "missing-field": (_without("body"), "request.body: is missing"),
    "unknown-field": (_with(extra=1), "request has unknown fields: extra"),
    "boolean-for-text": (_with(title=True), "request.title: must be text"),
    "number-for-list": (_with(changed_paths=1), "request.changed_paths"),
    "empty-body": (_with(body=""), "request.body"),
    "blank-title": (_with(title=" \n "), "request.title"),
    "huge-body": (_with(body="x" * 1_048_577), "request.body"),
    "huge-in-bytes": (_with(body="\u65e5" * 700_000), "the request is too large"),
    "same-key-twice": (b'{"title": "a", "title": "b"}', "the same key twice"),
    "not-a-number": (b'{"request_id": NaN}', "NaN"),
    "too-deep": (b"[" * 5_000 + b"]" * 5_000, "nested deeper"),
    "long-number": (b"1" * 10_000, "request is not valid JSON"),
    "nul-in-id": (_with(request_id="a\0b"), "characters that cannot be seen"),
    "line-break-in-id": (_with(request_id="a\nb"), "characters that cannot be seen"),
    "direction-mark-in-id": (_with(request_id="a\u202eb"), "characters that cannot be seen"),
    "long-id": (_with(request_id="\U0001f600" * 250), "over 900"),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_request_that_is_none(triage: Triage, name: str) -> None:
    """Bad input ends with status 2, nothing on stdout and one message, before any connection."""
    data, message = BAD_REQUESTS[name]
    answer = triage("start", "-", stdin=data)
    assert (2, "") == (answer.status, answer.out), answer.err
    assert message in answer.err
    assert "Traceback" not in answer.err
    assert answer.err.replace("\n", "").isprintable()


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 1_000])
def test_a_workflow_id_that_is_none(triage: Triage, name: str) -> None:
    """An empty, invisible or endless --id is refused before anything is sent."""
    answer = triage("start", "-", "--id", name, stdin=_with())
    assert (2, "") == (answer.status, answer.out)
    assert "workflow id" in answer.err


def test_an_id_that_cannot_be_used_has_a_way_out(triage: Triage) -> None:
    """Where a request's id makes no workflow id, the message says what does, and that works."""
    data, _ = BAD_REQUESTS["long-id"]
    refused = triage("start", "-", stdin=data)
    taken = triage("start", "-", "--id", "short", stdin=data)
    assert "--id" in refused.err
    assert 3 == taken.status


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (b"", "options is not valid JSON"),
        (b"[]", "options must be a JSON object"),
        (b'{"unknown": 1}', "options has unknown fields: unknown"),
        (b'{"max_steps": true}', "options.max_steps"),
        (b'{"max_steps": -1}', "options.max_steps"),
        (b'{"max_steps": 2.0}', "options.max_steps"),
        (b'{"mode": "reckless"}', "options.mode"),
        (b'{"model": "Gpt 9"}', "options.model"),
        (b'{"model": "gpt-9"}', 'unknown model "gpt-9"\nhint: known are rules, openai:NAME'),
        (b'{"approvals": {"op-6": true}}', "options.approvals"),
    ],
    ids=range(10),
)
def test_options_that_are_none(
    triage: Triage, tmp_path: Path, options: bytes, message: str
) -> None:
    """Options are held to their contract before anything is sent."""
    file = tmp_path / "options.json"
    file.write_bytes(options)
    answer = triage("start", write_request(tmp_path), "--options", file)
    assert (2, "") == (answer.status, answer.out)
    assert message in answer.err


@pytest.mark.parametrize(
    ("model", "status"),
    [("gpt-9", 2), ("rules:x", 2), ("recorded:abc", 2), ("openai:gpt-9", 3), ("x-ours", 3)],
)
def test_a_model_that_no_worker_can_have_starts_nothing(
    triage: Triage, tmp_path: Path, model: str, status: int
) -> None:
    """A misspelt model is refused before it takes the id; one that only a worker knows is not."""
    answer = triage("start", write_request(tmp_path), "--model", model)
    assert (status, status == 2) == (answer.status, "unknown model" in answer.err)


@pytest.mark.parametrize("path", ["no-such-file.json", "/", "", "a\udcffb", "x" * 5_000])
def test_a_file_that_cannot_be_read(triage: Triage, path: str) -> None:
    """A missing file, a folder or an impossible name is told, not traced."""
    answer = triage("start", path)
    assert (2, "") == (answer.status, answer.out)
    assert "Traceback" not in answer.err


def test_both_files_cannot_be_stdin(triage: Triage) -> None:
    """Standard input holds one document."""
    assert 2 == triage("start", "-", "--options", "-", stdin=b"{}").status


@pytest.mark.parametrize(
    "arguments",
    [
        ("start", "-"),
        ("list",),
        ("show", "x"),
        ("approve", "x", "op-6", "--version", "6"),
        ("evaluate", Path(__file__).parents[2] / "fixtures" / "issue_triage_cases.json"),
    ],
    ids=lambda given: given[0],
)
def test_no_server(triage: Triage, arguments: tuple[str | Path, ...]) -> None:
    """Without a server every command ends soon with status 3 and says what to do."""
    answer = triage(*arguments, stdin=_with())
    assert (3, "") == (answer.status, answer.out)
    assert "no Temporal server at 127.0.0.1:1" in answer.err
    assert "triage up" in answer.err


@pytest.mark.parametrize(
    "settings",
    [
        {"TRIAGE_TASK_QUEUE": "no spaces please"},
        {"TRIAGE_MODEL": "gpt"},
        {"TRIAGE_LOCAL_TRUST": "perhaps"},
        {"TRIAGE_CONFIG": "/no/such/file"},
        {"TEMPORAL_ADDRESS": "http://localhost:7233"},
        {"TEMPORAL_PROFILE": "no-such-profile"},
    ],
    ids=lambda given: next(iter(given)),
)
def test_settings_that_cannot_be_used(triage: Triage, settings: dict[str, str]) -> None:
    """A bad setting ends with status 2 and is named."""
    answer = triage("list", env=settings)
    assert (2, "") == (answer.status, answer.out), answer.err
    assert next(iter(settings)) in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("name", ["", "a\x1bb", "a\nb", "a\udcffb", "x" * 2_000])
def test_ids_that_no_run_has(stack: Stack, name: str) -> None:
    """An impossible id is refused in words, whatever is in it."""
    answer = stack.triage("show", name)
    assert answer.status in {1, 2}
    assert "" == answer.out
    assert "Traceback" not in answer.err
    assert answer.err.replace("\n", "").isprintable()


def test_odd_but_lawful_text_is_taken(stack: Stack, tmp_path: Path) -> None:
    """NUL, lone surrogates and a body of one MiB are text like any other: the run answers."""
    odd = write_request(tmp_path, title="nul \0 and \ud800 alone", body="x" * 1_048_570 + "\u65e5")
    answer = stack.triage("start", odd, "--wait", "--format", "json")
    assert 0 == answer.status, answer.err
    assert answer.json()["status"] in {"completed", "review_required"}
