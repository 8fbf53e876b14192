"""`triage policy scan` holds the rules against what a repository's automation listens to."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.cli.in_process import Typed
from triage.cli.policy_scanning import toml_text
from triage.cli.text import visible

DEPLOY = """\
on: {pull_request: {types: [labeled]}}
jobs:
  deploy:
    if: github.event.label.name == 'BUG' || startsWith(github.event.label.name, 'component:u')
    steps: [{run: make deploy}]
"""
OPEN = "on: {issues: {types: [labeled]}}\njobs:\n  tell:\n    steps: [{run: make tell}]\n"
RULES = """\
[labels]
bug = "control"
"component:ui" = "control"
documentation = "descriptive"
"""


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """A folder of its own, which is a checkout too."""
    return Typed(tmp_path, monkeypatch, capsys)


def _put(typed: Typed, name: str, text: str) -> None:
    path = typed.home / ".github" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_label_that_automation_listens_to_fails_the_scan(typed: Typed) -> None:
    """The label, file and line are named, and the lines that make it control."""
    _put(typed, "workflows/deploy.yml", DEPLOY)
    answer = typed("policy", "scan")
    assert 1 == answer.status
    rows = [line.split()[:3] for line in answer.out.splitlines() if "deploy.yml:4" in line]
    assert [
        ["BUG", "descriptive", ".github/workflows/deploy.yml:4"],
        ["component:u*", "-", ".github/workflows/deploy.yml:4"],
    ] == rows
    assert (
        "A model may propose what automation may listen to: bug, component:ui\n"
        "To be written into the rules:\n"
        "\n"
        "[labels]\n"
        '"bug" = "control"\n'
        '"component:ui" = "control"\n'
    ) == answer.out[answer.out.index("A model may") :]


def test_rules_that_name_them_as_control_pass(typed: Typed) -> None:
    """What the scan tells to write is what it wants to see."""
    _put(typed, "workflows/deploy.yml", DEPLOY)
    (typed.home / "triage.toml").write_text(RULES)
    answer = typed("policy", "scan", typed.home)
    assert 0 == answer.status, answer.out
    assert answer.out.endswith("No label that a model may propose is listened to.\n")


def test_what_any_label_may_start_is_said(typed: Typed) -> None:
    """Every descriptive label is exposed then, until a person has looked at that file."""
    _put(typed, "workflows/tell.yml", OPEN)
    found = typed("policy", "scan", "--format", "json")
    assert (1, 6, []) == (
        found.status,
        len(found.json()["exposed"]),
        found.json()["to_write"],
    )
    assert [("", "any", ".github/workflows/tell.yml", 3)] == [
        (use["label"], use["match"], use["file"], use["line"]) for use in found.json()["uses"]
    ]
    text = typed("policy", "scan").out
    assert "(every label)" in text
    assert "Every label may start something in .github/workflows/tell.yml" in text
    assert 0 == typed("policy", "scan", "--reviewed", ".github/workflows/tell.yml").status
    wrong = typed("policy", "scan", "--reviewed", "workflows/tell.yml")
    assert (2, "error: workflows/tell.yml: was not looked at") == (
        wrong.status,
        wrong.err.splitlines()[0],
    )


def test_a_file_that_cannot_be_read_fails_the_scan(typed: Typed) -> None:
    """Broken YAML is a finding with its line: what is in it may listen to any label."""
    _put(typed, "workflows/broken.yml", "on: push\njobs: {a: [\n")
    answer = typed("policy", "scan")
    assert (1, True, False) == (
        answer.status,
        ".github/workflows/broken.yml:2: is not YAML\n" in answer.out,
        "Traceback" in answer.err,
    )
    problems = typed("policy", "scan", "--format", "json").json()["problems"]
    assert [
        {"file": ".github/workflows/broken.yml", "line": 2, "message": "is not YAML"}
    ] == problems


def test_what_only_sorts_passes(typed: Typed) -> None:
    """Headings of release notes start nothing; they are named all the same."""
    _put(typed, "release.yml", "changelog: {categories: [{labels: [bug]}]}\n")
    answer = typed("policy", "scan")
    assert (0, True) == (answer.status, "which starts nothing: bug" in answer.out)


def test_nothing_to_look_at_is_said(typed: Typed) -> None:
    """Whoever scans the wrong folder is told; one that is not there is a mistake."""
    answer = typed("policy", "scan")
    assert (0, True) == (answer.status, "is this the root of a checkout?" in answer.err)
    assert 2 == typed("policy", "scan", "nowhere").status


def test_a_stranger_s_label_drives_no_terminal(typed: Typed) -> None:
    """Signs that cannot be seen are shown escaped, in the table and in the lines to write."""
    _put(typed, "stale.yml", 'staleLabel: "a\\u001b[2J\\u202e\\"b"\n')
    out = typed("policy", "scan").out
    assert ("\x1b" in out, "\u202e" in out) == (False, False)
    line = out.splitlines()[-1]
    assert {"x": {'a\x1b[2J\u202e"b': "control"}} == tomllib.loads(f"[x]\n{line}")


@pytest.mark.parametrize(
    "text", ["plain", "good first issue", 'a"b\\c', "\x00\x1f\u200b", "é😀", ""]
)
def test_a_label_is_written_as_toml_reads_it(text: str) -> None:
    """What is printed to be copied means exactly the label, and can be seen."""
    written = toml_text(text)
    assert {text: 1} == tomllib.loads(f"{written} = 1")
    assert visible(written) == written
