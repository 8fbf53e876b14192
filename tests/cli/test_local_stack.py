"""Checks the commands that bring their own server: what they show, and what they leave behind."""

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.conftest import (
    MARK,
    MOST_SECONDS,
    NOWHERE,
    TRIAGE,
    Answer,
    Stack,
    Up,
    clean_environment,
    processes_with,
    run_triage,
)

SUMMARY = "cases=9\npassed=9\n"


def _demo(folder: Path, *arguments: str) -> tuple[Answer, str]:
    """Run a demo where the user's own settings point elsewhere."""
    mark = uuid4().hex
    temporary = folder / "temporary"
    temporary.mkdir()
    env = clean_environment(
        folder,
        TEMPORAL_ADDRESS=NOWHERE,
        TEMPORAL_API_KEY="not-for-the-demo",
        TRIAGE_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none",
        TRIAGE_TASK_QUEUE="elsewhere",
        TMPDIR=str(temporary),
        **{MARK: mark},
    )
    (folder / "triage.toml").write_text('database_url = "sqlite:////nowhere/at/all.db"\n')
    return run_triage("demo", *arguments, env=env, timeout=2 * MOST_SECONDS), mark


def test_the_demo_shows_everything_and_leaves_nothing(tmp_path: Path) -> None:
    """Cases, runs, an approved write and what is next are shown; no process or file stays."""
    answer, mark = _demo(tmp_path)
    assert 0 == answer.status, answer.err
    assert SUMMARY in answer.out
    assert "unauthorized_side_effects=0\n" in answer.out
    assert all(f"ISSUE-{number}" in answer.out for number in range(201, 208))
    assert '"approver": "demo-maintainer"' in answer.out
    assert "component:api  by bounded-triage" in answer.out
    assert "triage up" in answer.out
    assert "op-6 at version 6" in answer.err
    assert set() == processes_with(mark)
    assert [] == list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_stopped_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM end the server, the worker and the folder too."""
    mark = uuid4().hex
    env = clean_environment(tmp_path, TMPDIR=str(tmp_path), **{MARK: mark})
    process = subprocess.Popen(
        [TRIAGE, "demo"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr
    assert any("evaluating" in line for line in process.stderr)
    process.send_signal(number)
    process.communicate(timeout=MOST_SECONDS)
    assert 128 + number == process.returncode
    assert set() == processes_with(mark)
    assert [] == list(tmp_path.iterdir())


def test_a_demo_can_be_kept(tmp_path: Path) -> None:
    """--keep leaves the data in a folder that a second demo does not touch."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "mine").touch()
    answer, _ = _demo(tmp_path, "--keep", str(kept))
    assert (2, "") == (answer.status, answer.out)
    assert "is not empty" in answer.err


def test_up_serves_what_it_prints(stack: Stack) -> None:
    """The printed address, page and queue are real."""
    printed = "\n".join(stack.up.greeting)
    assert stack.up.address in printed
    assert "triage, triage-writes" in printed
    assert "triage start" in printed
    host, _, port = stack.up.ui.removeprefix("http://").partition(":")
    page = http.client.HTTPConnection(host, int(port), timeout=MOST_SECONDS)
    page.request("GET", "/")
    assert 200 == page.getresponse().status
    page.close()


def test_up_refuses_a_busy_port_and_a_shared_folder(stack: Stack, tmp_path: Path) -> None:
    """A taken port or a folder in use is told, and the server that has it lives on."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = str(holder.getsockname()[1])
        busy = stack.triage("up", "--port", port, "--data", tmp_path / "new")
    shared = stack.triage("up", "--data", stack.up.home)
    assert [(2, ""), (2, "")] == [(a.status, a.out) for a in (busy, shared)]
    assert f"port {port} is taken" in busy.err
    assert not (tmp_path / "new").exists()
    assert "another 'triage up' uses this folder" in shared.err
    assert 0 == stack.triage("list").status


def test_up_brings_a_dead_worker_back_and_ends_all(tmp_path: Path) -> None:
    """A worker that dies is told and replaced; SIGTERM ends everything, and data stays."""
    up = Up(tmp_path)
    worker = _worker_of(up)
    os.kill(worker, signal.SIGKILL)
    _until(lambda: up.log.read_text().count("the worker is ready") == 2)
    request = {
        "request_id": "R-1",
        "title": "Orders fail",
        "body": "Every POST fails with status 500.",
        "changed_paths": ["backend/api.py"],
        "source": "test",
    }
    answer = run_triage(
        "start", "-", "--wait", env=up.environment, stdin=json.dumps(request).encode()
    )
    status = up.end(signal.SIGTERM)
    assert "completed" in answer.out, answer.err
    assert 0 == status
    assert "the worker ended by itself" in up.log.read_text()
    assert set() == processes_with(up.mark)
    assert (tmp_path / "temporal.db").exists()


def _worker_of(up: Up) -> int:
    """Return the process id of the worker that `up` told of."""
    [line] = [line for line in up.log.read_text().splitlines() if "the worker is ready" in line]
    return int(line.rpartition(" ")[2].rstrip(")"))


def _until(holds: Callable[[], bool]) -> None:
    """Wait for something that only a file tells."""
    deadline = time.monotonic() + MOST_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
