"""Checks the command's shape: help, versions, and what wrong arguments get."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Triage, clean_environment

COMMANDS = [
    "demo",
    "up",
    "start",
    "list",
    "show",
    "explain",
    "approve",
    "reject",
    "resume",
    "edit",
    "issues",
    "keys",
    "learn",
    "weights",
    "operations",
    "undo",
    "outcomes",
    "owners",
    "policy",
    "writes",
    "audit",
    "serve",
    "poll",
    "backfill",
    "evaluate",
    "investigate",
    "replay",
    "schema",
    "doctor",
]
SLOW_MODULES = {"temporalio", "sqlalchemy", "rich", "pydantic", "alembic"}


def test_help_lists_every_command(triage: Triage) -> None:
    """Whoever asks for help sees all that can be typed, on stdout."""
    answer = triage("--help")
    assert 0 == answer.status
    listed = re.findall(r"^  ([a-z]+)  ", answer.out.split("Commands:")[1], re.MULTILINE)
    assert set(COMMANDS) == set(listed)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(triage: Triage, command: str) -> None:
    """Each command tells what it does and takes, and asking does nothing else."""
    answer = triage(command, "--help")
    assert (0, "") == (answer.status, answer.err)
    assert f"Usage: triage {command}" in answer.out


def test_help_loads_nothing_slow(tmp_path: Path) -> None:
    """Help answers at once, because no client, database or table printer is loaded for it."""
    code = "import sys, triage.cli.main; print(*{m.split('.')[0] for m in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert set() == SLOW_MODULES & set(done.stdout.split())


def test_version(triage: Triage) -> None:
    """The version is one line on stdout."""
    answer = triage("--version")
    assert (0, "") == (answer.status, answer.err)
    assert re.fullmatch(r"triage \d+\.\d+\.\d+\n", answer.out)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["start"],
        ["issues"],
        ["writes"],
        ["writes", "stop"],
        ["audit"],
        ["operations", "reconcile"],
        ["operations", "frobnicate"],
        ["approve", "run", "op"],
        ["approve", "run", "op", "--version", "x"],
        ["approve", "run", "op", "--version", "-1"],
        ["approve", "run", "op", "--version", "6", "--as", ""],
        ["reject", "run", "op", "--version", "6", "--as", " "],
        ["list", "--format", "xml"],
        ["up", "--port", "70000"],
        ["start", "--mode", "reckless", "file"],
        ["approve", "run", "op", "--version", "6", "--key", "k.json"],
        ["schema", "nothing"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_told_apart(triage: Triage, arguments: list[str]) -> None:
    """Wrong arguments exit 2 with a message on stderr, nothing on stdout and no traceback."""
    answer = triage(*arguments)
    assert (2, "") == (answer.status, answer.out)
    assert answer.err
    assert "Traceback" not in answer.err


def test_an_argument_cannot_drive_the_terminal(triage: Triage) -> None:
    """What the user typed is shown with its control characters written out."""
    answer = triage("show\x1b[2J")
    assert 2 == answer.status
    assert "\x1b" not in answer.err
