"""Checks `triage owners check`: answers, findings and exit statuses."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.cli.conftest import Triage

GOOD: Final = b"* @a\n/docs/ docs@example.com @org/team\n/apps/github\n"
PATHS: Final = ("docs/x.md", "apps/github/x", "README.md")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a file without findings."""
    path = tmp_path / "CODEOWNERS"
    path.write_bytes(GOOD)
    return path


def test_answers_as_json(triage: Triage, file: Path) -> None:
    """JSON is exactly one object a path, in the order of the paths, and nothing else."""
    answer = triage("owners", "check", file, *PATHS, "--format", "json")
    assert (0, "") == (answer.status, answer.err)
    assert [
        {
            "path": "docs/x.md",
            "status": "owned",
            "owners": ["docs@example.com", "@org/team"],
            "line": 2,
        },
        {"path": "apps/github/x", "status": "unowned", "owners": [], "line": 3},
        {"path": "README.md", "status": "owned", "owners": ["@a"], "line": 1},
    ] == answer.json()


def test_answers_as_a_table(triage: Triage, file: Path) -> None:
    """People get each path with its status, owners, line and rule, then what was found."""
    answer = triage("owners", "check", file, *PATHS)
    assert (0, "") == (answer.status, answer.err)
    assert [
        "PATH STATUS OWNERS LINE RULE",
        "docs/x.md owned docs@example.com @org/team 2 /docs/",
        "apps/github/x unowned - 3 /apps/github",
        "README.md owned @a 1 *",
        "3 rules, 0 errors, 0 warnings",
    ] == [" ".join(line.split()) for line in answer.out.splitlines()]


def test_a_path_that_no_line_matches(triage: Triage) -> None:
    """Nobody owns it, and no line is named."""
    answer = triage("owners", "check", "-", "x", "--format", "json", stdin=b"/y @a\n")
    assert [{"path": "x", "status": "unowned", "owners": [], "line": None}] == answer.json()
    assert "(no line matches)" in triage("owners", "check", "-", "x", stdin=b"/y @a\n").out


def test_a_file_that_github_does_not_load(triage: Triage, tmp_path: Path) -> None:
    """4 MB are unknown, never unowned, and the check fails with the reason."""
    large = tmp_path / "large"
    large.write_bytes(b"* @a\n" * 800_000)
    answer = triage("owners", "check", large, "x", "--format", "json")
    assert 1 == answer.status
    assert [{"path": "x", "status": "unknown", "owners": [], "line": None}] == answer.json()
    assert "file: error too_large" in answer.err
    assert "(too_large)" in triage("owners", "check", large, "x").out


def test_without_a_path_the_file_is_linted(triage: Triage) -> None:
    """Findings have line, severity, code, the line's text made visible, and a hint."""
    answer = triage("owners", "check", "-", stdin=b"* @a\n/src/ csigs \x1b[2J\n")
    assert (1, "") == (answer.status, answer.err)
    shown = answer.out.splitlines()
    assert shown[0].startswith("line 2: error invalid_owner: owner 1 of the line")
    assert r"  | /src/ csigs \u{1b}[2J" in shown
    assert shown[-2].startswith("  hint: put @ before a name")
    assert "1 rule, 1 error, 0 warnings" == shown[-1]
    assert [] == triage("owners", "check", "-", "--format", "json", stdin=GOOD).json()


def test_findings_beside_json(triage: Triage) -> None:
    """A broken line leaves the answers of the others whole; it is told on stderr."""
    answer = triage("owners", "check", "-", "x", "--format", "json", stdin=b"* @a\n!x @b\n")
    assert 1 == answer.status
    assert [{"path": "x", "status": "owned", "owners": ["@a"], "line": 1}] == answer.json()
    assert "line 2: error negation" in answer.err


@pytest.mark.parametrize(("flags", "status"), [((), 0), (("--strict",), 1)])
def test_warnings_fail_only_a_strict_check(
    triage: Triage, flags: tuple[str, ...], status: int
) -> None:
    """A repeated pattern is told either way."""
    answer = triage("owners", "check", "-", *flags, stdin=b"a @x\na @y\n")
    assert (status, True) == (answer.status, "line 1: warning repeated_pattern" in answer.out)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a\\b", "a//b", ""])
def test_what_is_no_path_is_refused(triage: Triage, file: Path, path: str) -> None:
    """One path that is none ends the command before any answer."""
    answer = triage("owners", "check", file, "docs/x", path)
    assert (2, "") == (answer.status, answer.out)
    assert answer.err.startswith(f"error: {path}: the path ")


@pytest.mark.parametrize("name", ["absent", "."])
def test_a_file_that_cannot_be_read(triage: Triage, tmp_path: Path, name: str) -> None:
    """It is named, without a traceback."""
    answer = triage("owners", "check", tmp_path / name, "x")
    assert (2, "") == (answer.status, answer.out)
    assert f"error: {tmp_path / name}: cannot be read" in answer.err
