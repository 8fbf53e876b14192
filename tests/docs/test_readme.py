"""Runs the very lines of README.md, in order, and holds what they print to what it shows.

A ``console`` block is a terminal: lines that begin with ``$ `` are run by a shell, a backslash at
the end goes on in the next line, and what stands beneath has to be printed, with ``…`` for what
was left out. ``triage up`` stays in the background and gets free ports.
"""

from __future__ import annotations

import re
import time
from typing import Final

import pytest

from tests.docs.pages import ROOT
from tests.docs.terminal import LINE_SECONDS, UP, Line, Terminal, is_shown, lines_of

LINES: Final = lines_of("README.md")
# What only looks may be asked again, as a person would, until a run has come so far.
LOOKS: Final = re.compile(r"triage (list|show|issues show)|temporal workflow (query|result)")


@pytest.mark.slow
def test_the_lines_of_the_readme_do_what_it_says(terminal: Terminal) -> None:
    """Each line exits 0 and prints what README.md shows beneath it."""
    for line in LINES:
        if line.command != UP:
            _hold(terminal, line)


def _hold(terminal: Terminal, line: Line) -> None:
    deadline = time.monotonic() + LINE_SECONDS
    command = _made(terminal, line.command)
    while True:
        done = terminal.run(command)
        kept = done.returncode == 0 and is_shown(line.shown, done.stdout)
        if kept or not LOOKS.match(line.command) or time.monotonic() > deadline:
            break
    where = f"README.md, line {line.number}: {line.command}\n{done.stdout}"
    assert 0 == done.returncode, where
    assert kept, where


def _made(terminal: Terminal, command: str) -> str:
    """Return what a `make` line comes to, since a test must not set up its own environment anew."""
    if not command.startswith("make "):
        return command
    listed = terminal.run(f"make --directory {ROOT} --dry-run {command.removeprefix('make ')}")
    last: list[str] = re.findall(r"^\.venv/bin/(.+)$", listed.stdout, re.MULTILINE)[-1:]
    assert last, listed.stdout
    return last[0]


def test_the_readme_has_the_lines_that_it_promises() -> None:
    """Both ways are there from start to end: ours, and the plain `temporal` command's."""
    commands = "\n".join(re.sub(r"\\\n| +", " ", line.command) for line in LINES)
    for part in (
        "make demo",
        "triage start ",
        "triage approve ",
        "triage evaluate ",
        "workflow start --type IssueTriage ",
        "workflow start --type EvidenceLoop ",
        "query --workflow-id triage-ISSUE-202 --type state",
        "query --workflow-id triage-ISSUE-202 --type pending",
        "signal --workflow-id triage-ISSUE-202 --name approve ",
        "update execute --workflow-id triage-ISSUE-207 --name review ",
        "show --workflow-id triage-ISSUE-202 --output json",
        "workflow result --workflow-id triage-ISSUE-202",
    ):
        assert part in commands


def test_each_plain_start_refuses_an_existing_run() -> None:
    """No line of README.md can show another run's answer as that of the one it starts."""
    starts = [line.command for line in LINES if "temporal workflow start" in line.command]
    for command in starts:
        assert "--fail-existing --id-reuse-policy RejectDuplicate" in command


def test_the_check_of_output_can_fail() -> None:
    """A word that was not printed, or was printed too early, is missed."""
    assert is_shown("a  b\n…\nd\n", "a b\nc\nd\n")
    assert not is_shown("a b\n…\ne\n", "a b\nc\nd\n")
    assert not is_shown("d\n…\na b\n", "a b\nc\nd\n")
