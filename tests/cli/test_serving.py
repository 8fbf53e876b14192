"""The command that takes deliveries: what it refuses to start with, and how it ends."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

from tests.cli.conftest import MOST_SECONDS, NOWHERE, TRIAGE, Triage, clean_environment

SECRET = "It's a Secret to Everybody"


def test_without_a_secret_nothing_is_served(triage: Triage, tmp_path: Path) -> None:
    """No secret, a short one or an unreadable one: status 2, and a line that names the setting."""
    missing = {"TRIAGE_WEBHOOK_SECRET_FILE": str(tmp_path / "nowhere")}
    for env in ({}, {"TRIAGE_WEBHOOK_SECRET": "short"}, missing):
        answer = triage("serve", "--port", "0", env=env)
        assert (2, "") == (answer.status, answer.out)
        assert "TRIAGE_WEBHOOK_SECRET" in answer.err
        assert "Traceback" not in answer.err
        assert "short" not in answer.err.replace("shorter", "")


def test_without_a_token_no_issues_of_github_are_served(triage: Triage) -> None:
    """Runs read their issues on GitHub, so a secret alone is not enough: the setting is named."""
    env = {"TRIAGE_WEBHOOK_SECRET": SECRET, "TRIAGE_TRACKER": "github"}
    answer = triage("serve", "--port", "0", env=env)
    assert (2, "") == (answer.status, answer.out)
    assert "TRIAGE_GITHUB_TOKEN_FILE: is not set" in answer.err


def test_a_taken_port_is_told(triage: Triage) -> None:
    """Status 2, and what to name instead."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = triage("serve", "--port", port, env={"TRIAGE_WEBHOOK_SECRET": SECRET})
    assert 2 == answer.status
    assert f"cannot listen on 127.0.0.1 port {port}" in answer.err
    assert "--port" in answer.err


def test_a_database_that_is_away_is_told(triage: Triage) -> None:
    """It does not start without one: status 3, and no password in what it says."""
    env = {"TRIAGE_WEBHOOK_SECRET": SECRET}
    env["TRIAGE_DATABASE_URL"] = "postgresql://someone:s3cret@127.0.0.1:1/triage"
    answer = triage("serve", "--port", "0", env=env)
    assert 3 == answer.status
    assert "s3cret" not in answer.out + answer.err


def test_it_serves_without_temporal_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """It says where it serves and whether comments count, and ends in order on SIGTERM."""
    env = clean_environment(tmp_path, TEMPORAL_ADDRESS=NOWHERE, TRIAGE_WEBHOOK_SECRET=SECRET)
    process = subprocess.Popen(
        [TRIAGE, "serve", "--port", "0"],
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline().startswith("serving on http://127.0.0.1:")
        ignored = "orders in comments are ignored: TRIAGE_SERVICE_KEY is not set\n"
        assert ignored == process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=MOST_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert 0 == process.returncode
    assert err.rstrip().endswith("stopped")
