"""Checks the command's shape: help, versions, and what wrong arguments get."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.cli.conftest import NOWHERE, Triage, clean_environment

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


INTERRUPTED: Final = """
import os, signal, sys
class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, AtImport())
sys.argv = ["triage", "list"]
{start}
"""


@pytest.mark.parametrize("module", ["triage.cli.main", "typer", "temporalio"])
def test_ctrl_c_while_it_loads_shows_no_traceback(tmp_path: Path, module: str) -> None:
    """Whatever is being loaded when it comes, the program that is installed ends as stopped."""
    document = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    place, _, name = document["project"]["scripts"]["triage"].partition(":")
    start = f"from {place} import {name}; {name}()"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(module=module, start=start)],
        env=clean_environment(tmp_path, TEMPORAL_ADDRESS=NOWHERE),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (130, "", "") == (done.returncode, done.stdout, done.stderr)


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


def test_yes_is_told_to_be_needless_where_nobody_is_asked(triage: Triage) -> None:
    """An approval is of exactly what is named: there is no question, and so nothing to guess."""
    answer = triage("approve", "run", "op-6@6", "--yes")
    assert (2, "") == (answer.status, answer.out)
    told = "error: 'triage approve' has no --yes\nhint: it asks nobody: leave --yes out\n"
    assert told == answer.err


def test_an_argument_cannot_drive_the_terminal(triage: Triage) -> None:
    """What the user typed is shown with its control characters written out."""
    answer = triage("show\x1b[2J")
    assert 2 == answer.status
    assert "\x1b" not in answer.err


def test_no_server_is_started_for_rules_that_cannot_be_used(triage: Triage, tmp_path: Path) -> None:
    """`up` says what is wrong with the rules before it begins, with the status of bad input."""
    rules = tmp_path / "rules.toml"
    rules.write_text("version", encoding="utf-8")
    home = tmp_path / "data"
    answer = triage("up", "--data", home, env={"TRIAGE_POLICY": str(rules)})
    assert (2, "", False) == (answer.status, answer.out, home.exists())
    assert "is not TOML" in answer.err
